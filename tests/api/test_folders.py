"""Names of folders, and the notes in them."""

import os

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api.outputs.folders import NOTE, FetchRecord, folder_name, read_note, write_note

#: Names, the odd ones often: of dots, slashes, percent signs, and too long.
NAMES = st.one_of(
    st.text(st.characters(codec=None)),
    st.text("./%~\0a\u00e9\udc80", max_size=12),
    st.text("a/%\u00e9", min_size=150, max_size=400),
)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("sweep_007", "sweep_007"),
        ("condor#12.0", "condor#12.0"),
        ("two words, é", "two words, é"),
        ("..", "%2E."),
        (".hidden", "%2Ehidden"),
        ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
        ("100%", "100%25"),
        ("", "%"),
        ("a\nb\0", "a%0Ab%00"),
    ],
)
def test_a_folder_has_its_jobs_name_where_that_can_be_one(name, folder):
    assert folder_name(name) == folder


@given(NAMES)
def test_no_name_leaves_its_directory_or_is_hidden(name):
    folder = folder_name(name)
    assert os.path.normpath(f"/results/{folder}") == f"/results/{folder}"
    assert os.path.dirname(f"/results/{folder}") == "/results"  # noqa: PTH120
    assert not folder.startswith(".")
    assert 0 < len(folder.encode()) <= 200
    assert folder.isprintable()


@given(NAMES, NAMES)
def test_different_names_give_different_folders(one, other):
    assert (folder_name(one) == folder_name(other)) == (one == other)


def test_a_note_is_read_as_it_was_written(tmp_path):
    note = FetchRecord("https://boinc.example.edu/test/", 7, 9, {"out": 3, "b/é": 0}, stderr=None)
    write_note(tmp_path, note, "job")
    assert read_note(tmp_path) == note


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", '{"format": 2}', '{"format": 1, "files": 3}']
)
def test_a_note_that_cannot_be_read_is_none(text, tmp_path):
    (tmp_path / NOTE).write_text(text)
    assert read_note(tmp_path) is None


def test_only_regular_files_of_the_same_size_are_there(tmp_path):
    (tmp_path / "same").write_text("abc")
    (tmp_path / "longer").write_text("abcd")
    (tmp_path / "link").symlink_to(tmp_path / "same")
    (tmp_path / "directory").mkdir()
    sizes = dict.fromkeys(["same", "longer", "link", "directory", "missing", "nul\0"], 3)
    assert FetchRecord("", 1, 1, sizes, stderr=None).there(tmp_path) == {"same": 3}
