"""Zip archives that a volunteer may send."""

import io
import stat
import struct
import zipfile
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch._zip_archive import ZipArchive
from tests.fetch.archives import check_names, contents, leading_out, names, tricky

WHAT = "output 'out.zip' of job 'j'"


@contextmanager
def opened(path, max_files=100, max_bytes=1_000_000):
    with (
        path.open("rb") as file,
        ZipArchive(file, WHAT, max_files=max_files, max_bytes=max_bytes) as archive,
    ):
        yield archive


def make(path, *members, data=b"data"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in members:
            archive.writestr(member, data)
    return path


def of_mode(name, mode):
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    return info


def test_files_and_directories_are_listed_and_read(tmp_path):
    path = make(tmp_path / "a", "one", "dir/two", "./three", data=b"x" * 3_000)
    with zipfile.ZipFile(path, "a") as archive:
        archive.mkdir("empty") if hasattr(archive, "mkdir") else archive.writestr("empty/", "")
    with opened(path) as found:
        assert found.files == ("one", "dir/two", "three")
        assert found.directories == ("empty",)
        assert contents(found) == dict.fromkeys(found.files, b"x" * 3_000)


@leading_out
def test_a_path_that_leaves_the_directory_is_refused(name, tmp_path):
    with (
        pytest.raises(OutputError, match="is not a path below a directory"),
        opened(make(tmp_path / "a", "good", name)),
    ):
        pass


@pytest.mark.parametrize(
    ("mode", "what"),
    [
        pytest.param(stat.S_IFLNK | 0o777, "is a link", id="symbolic link"),
        pytest.param(stat.S_IFCHR | 0o666, "is not a regular file", id="device"),
        pytest.param(stat.S_IFIFO | 0o666, "is not a regular file", id="pipe"),
        pytest.param(stat.S_IFSOCK | 0o666, "is not a regular file", id="socket"),
    ],
)
def test_only_files_and_directories_are_taken(mode, what, tmp_path):
    with (
        pytest.raises(OutputError, match=what),
        opened(make(tmp_path / "a", of_mode("x", mode), data=b"/etc/passwd")),
    ):
        pass


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("names", "why"),
    [
        pytest.param(("x", "x"), "two members called 'x'", id="the same name"),
        pytest.param(("x", "./x"), "two members called 'x'", id="the same name, spelled otherwise"),
        pytest.param(
            ("x", "x/y"), "'x' is both a file and a directory", id="a file with files in it"
        ),
        pytest.param(("x/y/z", "x"), "'x' is both a file and a directory", id="and the other way"),
    ],
)
def test_members_that_exclude_each_other_are_refused(names, why, tmp_path):
    with pytest.raises(OutputError, match=why), opened(make(tmp_path / "a", *names)):
        pass


def test_a_list_of_members_that_would_fill_the_memory_is_refused_unread(tmp_path):
    path = tmp_path / "a"
    size = 0x7FFF_FFFF
    with path.open("wb") as file:
        file.truncate(size)  # without a block on the disk
        file.seek(size)
        file.write(struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, size, 0, 0))
    with pytest.raises(OutputError, match="more than 10 members"), opened(path, max_files=10):
        pass


def test_what_an_archive_declares_does_not_count_but_what_comes_out(tmp_path):
    path = make(tmp_path / "a", "x", "y", data=bytes(600_000))
    with (
        opened(path, max_bytes=1_000_000) as archive,
        pytest.raises(OutputError, match=r"larger than 1000000 bytes \(unzip_max_bytes"),
    ):
        contents(archive)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"ERROR: no", id="a text"),
        pytest.param(b"PK\x05\x06", id="cut in its end"),
        pytest.param(b"PK\x05\x06" + b"\xff" * 18, id="an end that points nowhere"),
    ],
)
def test_what_is_no_archive_is_called_so(data, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(data)
    with pytest.raises(OutputError, match="is not a readable zip archive"), opened(path):
        pass


def test_a_damaged_member_is_called_so(tmp_path):
    path = tmp_path / "a"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("x", b"the very text")
    path.write_bytes(path.read_bytes().replace(b"the very text", b"the vary text"))
    with opened(path) as found, pytest.raises(OutputError, match="member 'x' is damaged"):
        contents(found)


def test_an_encrypted_member_is_called_damaged(tmp_path):
    path = make(tmp_path / "a", "x")
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    path.write_bytes(data)
    with (
        opened(path) as found,
        pytest.raises(OutputError, match=r"member 'x' is damaged.*encrypted"),
    ):
        contents(found)


def test_an_archive_for_large_files_is_read(tmp_path):
    path = tmp_path / "a"
    with zipfile.ZipFile(path, "w") as archive, archive.open("x", "w", force_zip64=True) as member:
        member.write(b"text")
    with opened(path) as found:
        assert contents(found) == {"x": b"text"}


@given(members=st.lists(names | tricky, min_size=1, max_size=4))
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_whatever_the_names_nothing_leaves_the_directory(members, tmp_path_factory):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for member in members:
            archive.writestr(zipfile.ZipInfo(member or "x"), b"")
    root = tmp_path_factory.getbasetemp()
    path = root / "hypothesis.zip"
    path.write_bytes(buffer.getvalue())
    with suppress(OutputError), opened(path) as found:
        check_names(found, root)


@given(number=st.integers(1, 12), before=st.binary(max_size=40), comment=st.binary(max_size=200))
def test_an_archive_has_as_many_members_as_its_list_wherever_that_is(
    number, before, comment, tmp_path_factory
):
    path = tmp_path_factory.getbasetemp() / "counted.zip"
    path.write_bytes(before)
    with zipfile.ZipFile(path, "a") as archive:
        for member in range(number):
            archive.writestr(str(member), b"")
        archive.comment = comment
    with opened(path, max_files=number) as found:
        assert len(found.files) == number
    with pytest.raises(OutputError, match="more than"), opened(path, max_files=number - 1):
        pass
