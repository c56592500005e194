"""Metrics in Prometheus' text format, read by Prometheus' own parser for Python."""

import re

from hypothesis import given, strategies as st
from prometheus_client.parser import text_string_to_metric_families

from boinc_gahp.cli.ledger.status import _METRICS, exposition

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
#: Two underscores at the beginning are Prometheus' own.
NAMES = st.from_regex(re.compile(r"(?!__)[a-z_][a-z0-9_]{0,20}", re.ASCII), fullmatch=True)
VALUES = st.integers(0, 10**12) | st.floats(allow_nan=False)


@st.composite
def metrics(draw):
    found = {}
    for name in draw(st.lists(st.sampled_from(sorted(_METRICS)), unique=True, max_size=3)):
        keys = draw(st.lists(NAMES, unique=True, min_size=1, max_size=3))
        rows = draw(st.lists(st.tuples(*[TEXTS] * len(keys)), unique=True, max_size=4))
        found[name] = [(dict(zip(keys, row, strict=True)), draw(VALUES)) for row in rows]
    return found


@given(metrics())
def test_whatever_is_in_labels_comes_back_as_it_was(written):
    lines = list(exposition(written))
    families = list(text_string_to_metric_families("".join(f"{line}\n" for line in lines)))
    assert all(family.type == "gauge" for family in families)
    assert {
        family.name: (family.documentation, [(each.labels, each.value) for each in family.samples])
        for family in families
    } == {f"boinc_gahp_{name}": (_METRICS[name], its) for name, its in written.items() if its}
