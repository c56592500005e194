"""Archives for tests of zip and tar."""

import io
import tarfile
import tempfile
from contextlib import contextmanager

import pytest
from hypothesis import strategies as st

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch._tar_archive import TarArchive

END = bytes(2 * tarfile.BLOCKSIZE)

names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
tricky = st.lists(st.sampled_from(["..", ".", "", "a", "b", "\\", "~", "C:"]), min_size=1).map(
    "/".join
)


@contextmanager
def opened(data, max_files=100, max_bytes=1_000_000, kind=TarArchive):
    """Open an archive: its bytes, or its file."""
    with tempfile.TemporaryFile() if isinstance(data, bytes) else data.open("rb") as file:
        if isinstance(data, bytes):
            file.write(data)
            file.flush()
        with kind(file, "archive 'a'", max_files=max_files, max_bytes=max_bytes) as archive:
            yield archive


def check_refused(why, data, max_files=100, kind=TarArchive):
    """Assert that an archive is refused when it is opened."""
    with pytest.raises(OutputError, match=why), opened(data, max_files, kind=kind):
        pass


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


def of(name, data=b"data", **more):
    """Return a tar archive's member, and its contents."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def header(name="x", **fields):
    """Return the block before a member's contents, which may tell anything."""
    info, _ = of(name, **{"data": b"", **fields})
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def padded(data):
    return data + bytes(-len(data) % tarfile.BLOCKSIZE)


def extended(*records):
    """Return an extended header (POSIX, "pax Extended Header") with these records."""
    data = b"".join(records)
    return header("PaxHeaders/x", type=tarfile.XHDTYPE, size=len(data)) + padded(data)
