"""Names from the network, and what is made of them."""

import os

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.placements import below, new_file, shown

#: Names, the odd ones often.
NAMES = st.one_of(
    st.text(st.characters(codec=None)),
    st.lists(st.sampled_from(["..", ".", "", "a", ".b", "\\", "\0", ".boinc_gahp", "é" * 128])).map(
        "/".join
    ),
    st.text("./\\a\0", max_size=12),
)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("out", "out"),
        ("./a//b/", "a/b"),
        (".", ""),
        ("", None),
        ("/a", None),
        ("a/../b", None),
        ("..\\a", None),
        ("\\a", None),
        ("a\0", None),
        (".a/b", ".a/b"),
    ],
)
def test_a_name_is_a_path_below_a_directory_or_none(name, path):
    assert below(name) == path


@given(NAMES)
def test_what_is_below_a_directory_stays_there_and_is_written_in_one_way(name):
    path = below(name)
    if path is not None:
        assert below(path or ".") == path
        assert os.path.normpath(f"/job/{path}") == f"/job/{path}".rstrip("/")


@given(NAMES)
def test_a_new_file_is_neither_hidden_nor_ours_nor_elsewhere(name):
    try:
        path = new_file(name, "output 'x' of job 'j'")
    except OutputError:
        return
    parts = path.split("/")
    assert all(0 < len(os.fsencode(part)) <= 255 for part in parts)
    assert not any(part.startswith(".") for part in parts)
    assert os.path.normpath(f"/job/{path}") == f"/job/{path}"


@given(NAMES)
def test_what_is_shown_is_never_hidden(name):
    assert not any(part.startswith(".") for part in shown(name).split("/"))
    assert shown(shown(name)) == shown(name)
