"""What transfer_output_remaps says."""

import re

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.htcondor._job_ad import read_remaps

# HTCondor has no way to write a \ before a separator, space around a name, or a tab.
_ANY = st.text(st.sampled_from("=;\\ ./ab\udcff") | st.characters(exclude_characters="\t\n"))
PARTS = _ANY.filter(lambda text: bool(text) and text == text.strip() and text[-1] != "\\")
PATHS = PARTS.filter(lambda text: "://" not in text)


def write_remaps(remaps):
    return ";".join(f"{escaped(name)}={escaped(path)}" for name, path in remaps.items())


def escaped(text):
    return re.sub(r"([=;])", r"\\\1", text)


@pytest.mark.parametrize(
    ("text", "remaps"),
    [
        ("", []),
        (" ; ;", []),
        ("a=b", [("a", "b")]),
        ("a=b;", [("a", "b")]),
        (" a = b c ;\n\td=e ", [("a", "b c"), ("d", "e")]),
        ("a=dir/", [("a", "dir/")]),
        ("a=/x/y;b=../z", [("a", "/x/y"), ("b", "../z")]),
        ("a=b=c", [("a", "b=c")]),
        ("a\\=b=c\\;d", [("a=b", "c;d")]),
        ("a=b\\c", [("a", "b\\c")]),
        ("a=b\\\\;c=d", [("a", "b\\;c=d")]),
        ("a=1;a=2", [("a", "1")]),
        (
            "out1.dat=results/out1_1.dat;out2.dat=/home/alice/x2.dat",
            [("out1.dat", "results/out1_1.dat"), ("out2.dat", "/home/alice/x2.dat")],
        ),
    ],
)
def test_remaps_are_read_as_htcondor_reads_them(text, remaps):
    assert read_remaps(text) == tuple(remaps)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a", "'a' has no ="),
        ("a=b;c;d=e", "'c' has no ="),
        ("a\\=b", "has no ="),
        ("=b", "lacks the name"),
        ("a=", "lacks the path"),
        ("a=s3://bucket/a", "'a' goes to 's3://bucket/a'"),
        ("a=s3://me:geheim@x/a", "'s3://<login>@x/a'"),
    ],
)
def test_what_is_no_remap_is_named(text, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        read_remaps(text)


@given(st.dictionaries(PARTS, PATHS))
def test_remaps_survive_being_written_and_read(remaps):
    assert read_remaps(write_remaps(remaps)) == tuple(remaps.items())


@given(st.text(st.sampled_from("=;\\ a") | st.characters()))
def test_any_text_is_remaps_or_a_value_error(text):
    try:
        remaps = read_remaps(text)
    except ValueError:
        return
    assert all(name and path for name, path in remaps)


def test_a_long_text_without_an_end_is_read_at_once():
    with pytest.raises(ValueError, match="has no ="):
        read_remaps("\\=" * 50_000)
