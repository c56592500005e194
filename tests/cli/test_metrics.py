"""Metrics in Prometheus' text format, read by Prometheus' own parser for Python."""

import re

from hypothesis import given, strategies as st
from prometheus_client.parser import text_string_to_metric_families

from boinc_gahp.cli.ledger.status import MetricFamily, exposition

#: What its parser loses is none of ours: it strips spaces from a help text's ends.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
HELP = TEXTS.map(str.strip).filter(lambda words: words == words.strip() and words)
#: Two underscores at the beginning are Prometheus' own.
NAMES = st.from_regex(re.compile(r"(?!__)[a-z_][a-z0-9_]{0,20}", re.ASCII), fullmatch=True)
VALUES = st.integers(0, 10**12) | st.floats(allow_nan=False)


@st.composite
def families(draw):
    found = []
    for name in draw(st.lists(NAMES, unique=True, max_size=3)):
        keys = draw(st.lists(NAMES, unique=True, min_size=1, max_size=3))
        rows = draw(st.lists(st.tuples(*[TEXTS] * len(keys)), unique=True, max_size=4))
        samples = [(dict(zip(keys, row, strict=True)), draw(VALUES)) for row in rows]
        found.append(MetricFamily(f"boinc_gahp_{name}", draw(HELP), samples))
    return found


@given(families())
def test_whatever_is_in_labels_comes_back_as_it_was(written):
    text = exposition(written)
    read = [
        MetricFamily(
            family.name,
            family.documentation,
            [(sample.labels, sample.value) for sample in family.samples],
        )
        for family in text_string_to_metric_families(text)
    ]
    assert all(family.type == "gauge" for family in text_string_to_metric_families(text))
    assert read == [family for family in written if family.samples]
    assert text == "" or text.endswith("\n")
