"""Zip archives that a volunteer may send; their names are checked as tar archives' are."""

import io
import stat
import struct
import zipfile
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch._archive import ZipArchive
from tests.fetch import archives
from tests.fetch.archives import check_names, contents, names, tricky

opened = partial(archives.opened, kind=ZipArchive)
check_refused = partial(archives.check_refused, kind=ZipArchive)


def make(*members, data=b"data", before=b"", comment=b"", compression=zipfile.ZIP_DEFLATED):
    file = io.BytesIO(before)
    with zipfile.ZipFile(file, "a", compression) as archive:
        for member in members:
            archive.writestr(member, b"" if str(member).endswith("/") else data)
        archive.comment = comment
    return file.getvalue()


def test_files_and_directories_are_listed_and_read():
    with opened(make("one", "dir/two", "./three", "empty/", data=b"x" * 3_000)) as found:
        assert found.files == ("one", "dir/two", "three")
        assert found.directories == ("empty",)
        assert contents(found) == dict.fromkeys(found.files, b"x" * 3_000)


NO_FILES = {
    "symbolic link": (stat.S_IFLNK | 0o777, "is a link"),
    "device": (stat.S_IFCHR | 0o666, "is not a regular file"),
    "pipe": (stat.S_IFIFO | 0o666, "is not a regular file"),
    "socket": (stat.S_IFSOCK | 0o666, "is not a regular file"),
}


@pytest.mark.parametrize(("mode", "what"), NO_FILES.values(), ids=NO_FILES)
def test_only_files_and_directories_are_taken(mode, what):
    info = zipfile.ZipInfo("x")
    info.create_system = 3
    info.external_attr = mode << 16
    check_refused(what, make(info, data=b"/etc/passwd"))


def test_a_list_of_members_that_would_fill_the_memory_is_refused_unread(tmp_path):
    path = tmp_path / "a"
    size = 0x7FFF_FFFF
    with path.open("wb") as file:
        file.truncate(size)  # without a block on the disk
        file.seek(size)
        file.write(struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, size, 0, 0))
    check_refused("more than 10 members", path, max_files=10)


NO_ARCHIVES = {
    "empty": b"",
    "a text": b"ERROR: no",
    "cut in its end": b"PK\x05\x06",
    "an end that points nowhere": b"PK\x05\x06" + b"\xff" * 18,
}


@pytest.mark.parametrize("data", NO_ARCHIVES.values(), ids=NO_ARCHIVES)
def test_what_is_no_archive_is_called_so(data):
    check_refused("is not a readable zip archive", data)


def check_read_fails(why, data):
    with opened(data) as archive, pytest.raises(OutputError, match=why):
        contents(archive)


def test_what_an_archive_declares_does_not_count_but_what_comes_out():
    packed = make("x", "y", data=bytes(600_000))
    check_read_fails(r"larger than 1000000 bytes \(unzip_max_bytes", packed)


def test_a_damaged_member_is_called_so():
    stored = make("x", data=b"the very text", compression=zipfile.ZIP_STORED)
    check_read_fails("member 'x' is damaged", stored.replace(b"very", b"vary"))


def test_an_encrypted_member_is_called_damaged():
    data = bytearray(make("x"))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    check_read_fails(r"member 'x' is damaged.*encrypted", bytes(data))


def test_an_archive_for_large_files_is_read():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, archive.open("x", "w", force_zip64=True) as member:
        member.write(b"text")
    with opened(file.getvalue()) as found:
        assert contents(found) == {"x": b"text"}


@given(members=st.lists(names | tricky, min_size=1, max_size=4))
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_whatever_the_names_nothing_leaves_the_directory(members, tmp_path_factory):
    archive = make(*(zipfile.ZipInfo(member or "x") for member in members), data=b"")
    with suppress(OutputError), opened(archive) as found:
        check_names(found, tmp_path_factory.getbasetemp())


@given(number=st.integers(1, 12), before=st.binary(max_size=40), comment=st.binary(max_size=200))
def test_an_archive_has_as_many_members_as_its_list_wherever_that_is(number, before, comment):
    archive = make(*map(str, range(number)), data=b"", before=before, comment=comment)
    with opened(archive, max_files=number) as found:
        assert len(found.files) == number
    check_refused("more than", archive, max_files=number - 1)
