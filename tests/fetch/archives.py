"""What tests of zip and tar archives have in common."""

import io

import pytest
from hypothesis import strategies as st

leading_out = pytest.mark.parametrize(
    "name",
    [
        pytest.param("/etc/passwd", id="absolute"),
        pytest.param("../up", id="dot dot"),
        pytest.param("a/../../up", id="dot dot inside"),
        pytest.param("a/..", id="dot dot at the end"),
        pytest.param("..\\up", id="dot dot behind a backslash"),
        pytest.param("\\etc", id="absolute, with a backslash"),
    ],
)

names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
tricky = st.lists(st.sampled_from(["..", ".", "", "a", "b", "\\", "~", "C:"]), min_size=1).map(
    "/".join
)


def contents(archive):
    found = {}
    for name in archive.files:
        buffer = io.BytesIO()
        archive.extract(name, buffer.write)
        found[name] = buffer.getvalue()
    return found


def check_names(archive, root):
    """Assert that nothing in an archive leaves the directory into which it is unpacked."""
    for name in (*archive.files, *archive.directories):
        assert not name.startswith("/")
        assert not {"..", ".", ""} & set(name.split("/"))
        assert (root / "in" / name).resolve().is_relative_to(root / "in")
