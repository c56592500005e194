"""Input files and arguments as text."""

import shlex

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api.rows.texts import read_file, read_named, relative_to, split_args
from boinc_gahp.errors import BadRequest
from boinc_gahp.submit.types import InlineFile, LocalFile, RemoteFile, StagedFile
from tests.api.texts import written

texts = st.text(min_size=1)
#: Paths that people have, and those that look like something else.
paths = st.one_of(
    texts,
    st.builds(
        "{}:{}".format,
        st.sampled_from(["file", "staged", "Inline", "remote", "http", "C", "fiel", "ftp"]),
        st.text(),
    ),
)
MD5 = "0123456789abcdef" * 2
urls = st.builds(
    "{}{}".format, st.sampled_from(["http://h/", "HTTPS://h:8/", "https://u:p@h/?"]), st.text()
)
sizes = st.integers(0, 10**18 - 1)
digests = st.text("0123456789abcdefABCDEF", min_size=32, max_size=32)
files = st.one_of(
    st.builds(LocalFile, paths),
    st.builds(StagedFile, texts),
    st.builds(InlineFile, texts),
    st.builds(RemoteFile, urls, sizes, digests),
)


@given(files)
def test_what_is_written_is_read_back(file):
    assert read_file(written(file)) == file


@given(st.text())
def test_any_text_is_a_file_or_a_refusal_that_tells_what_was_expected(text):
    said = ""
    try:
        read_file(text)
    except BadRequest as error:
        said = str(error)
    assert "expected" in said if said else text
    assert "\n" not in said


@given(st.text(st.sampled_from("ab =:'\"\\\t\n\r\x0b\x0c\x85\xa0#~$é")))
def test_arguments_are_split_as_a_shell_would(text):
    try:
        expected = shlex.split(text)
    except ValueError:
        with pytest.raises(BadRequest, match="cannot be split"):
            split_args(text)
    else:
        assert split_args(text) == tuple(expected)


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("/tmp/a:b", LocalFile("/tmp/a:b")),
        ("C:\\data.txt", LocalFile("C:\\data.txt")),
        ("run12:final.dat", LocalFile("run12:final.dat")),
        ("file:staged:x", LocalFile("staged:x")),
        (f"remote:http://h/a,b,5,{MD5}", RemoteFile("http://h/a,b", 5, MD5)),
    ],
)
def test_a_colon_alone_makes_no_other_kind_of_file(text, file):
    assert read_file(text) == file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("inline:", "an empty file has to be one on disk"),
        ("stagd:abc", "did you mean staged:?"),
        ("ftp://h/a", "ftp: is not a known kind of file"),
        ("https://me:key@h.edu/a", '"https://<login>@h.edu/a": a project needs its size and MD5'),
        ("remote:http://h/a", "expected remote:URL,NBYTES,MD5"),
        ("remote:http://h/a,5k,", "NBYTES is a number"),
        ("remote:http://h/a,,", "NBYTES is a number"),
        ("remote:http://h/a,5,", "32 hexadecimal digits"),
        ("remote:http://h/a,5,xyz", "32 hexadecimal digits"),
        (f"remote:/h/a,5,{MD5}", "expected a URL"),
    ],
)
def test_a_refusal_tells_what_was_expected(text, said):
    with pytest.raises(BadRequest, match=said.replace("?", r"\?")):
        read_file(text)


def test_an_input_has_a_name():
    assert read_named("in=a=b.txt") == ("in", LocalFile("a=b.txt"))
    for text in ("a.txt", "=a.txt"):
        with pytest.raises(BadRequest, match="expected NAME=FILE"):
            read_named(text)


def test_only_relative_paths_are_seen_from_a_directory():
    assert relative_to("/data", LocalFile("a/b")) == LocalFile("/data/a/b")
    assert relative_to("/data", "/a/b") == LocalFile("/a/b")
    assert relative_to("/data", StagedFile("a")) == StagedFile("a")
