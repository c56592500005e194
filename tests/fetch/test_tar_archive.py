"""Tar archives that a volunteer may send; what is checked of names holds for zip archives, too."""

import io
import subprocess
import tarfile
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.placements import below
from tests.fetch.archives import (
    END,
    check_names,
    check_refused,
    contents,
    extended,
    header,
    names,
    of,
    opened,
    padded,
    tricky,
)
from tests.helpers import most_memory

UNREADABLE = "is not a readable tar archive"
GNU, PAX, USTAR = tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT
SOFT, DIRECTORY = tarfile.SYMTYPE, tarfile.DIRTYPE


def directory(name):
    return of(name, b"", type=DIRECTORY)


def link(name, target, kind=tarfile.LNKTYPE):
    return of(name, b"", type=kind, linkname=target)


def make(*members, form=GNU):
    """Return an archive of names, or of members with their contents."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form, errors="surrogateescape") as archive:
        for member in members:
            info, data = of(member) if isinstance(member, str) else member
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def record(key, value):
    rest = b" " + key + b"=" + value + b"\n"
    size = len(rest)
    while len(str(size)) + len(rest) != size:
        size = len(str(size)) + len(rest)
    return str(size).encode() + rest


@pytest.mark.parametrize("form", [USTAR, GNU, PAX], ids=["ustar", "gnu", "pax"])
def test_files_and_directories_are_listed_and_read(form):
    long = f"dir/{'x' * 80}/{'y' * 90}"
    members = [
        directory("./"),
        of("one", b"1" * 3_000_000),
        of("./dir/two", b"", mode=0o755),
        directory("empty/"),
        of(long, b"3"),
        of("old", b"4", type=tarfile.AREGTYPE),
    ]
    with opened(make(*members, form=form), max_bytes=10_000_000) as found:
        assert found.files == ("one", "dir/two", long, "old")
        assert found.directories == ("empty",)
        assert contents(found) == {"one": b"1" * 3_000_000, "dir/two": b"", long: b"3", "old": b"4"}
        assert [name for name in found.files if found.is_executable(name)] == ["dir/two"]


@pytest.mark.parametrize("form", [GNU, PAX], ids=["gnu", "pax"])
def test_names_may_be_long_and_have_any_bytes(form):
    names = [
        "/".join(["d" * 200] * 15) + "/end",
        "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
        "\udcff",
    ]
    members = [of(name) for name in names]
    with opened(make(*members, form=form)) as found:
        assert found.files == tuple(names)


@pytest.mark.processes
@pytest.mark.parametrize("form", ["ustar", "gnu", "posix", "v7"])
def test_what_tar_makes_is_read(form, tmp_path):
    work = tmp_path / "work"
    (work / "plots/deep").mkdir(parents=True)
    (work / "plots/a b").write_bytes(b"a")
    (work / "plots/hard").hardlink_to(work / "plots/a b")
    (work / "plots/soft").symlink_to("a b")
    (work / "plots/deep/prog").write_bytes(b"#!/bin/sh\n")
    (work / "plots/deep/prog").chmod(0o700)
    packed = tmp_path / "out.tar"
    follow = ["tar", f"--format={form}", "-chf", str(packed), "-C", str(work), "./plots"]
    files = {
        "plots/a b": b"a",
        "plots/hard": b"a",
        "plots/soft": b"a",
        "plots/deep/prog": b"#!/bin/sh\n",
    }
    keep = [word.replace("-chf", "-cf") for word in follow]
    for command in (follow, keep):
        subprocess.run(command, check=True)
        with opened(packed) as found:
            assert contents(found) == files
            assert set(found.directories) == {"plots", "plots/deep"}
            assert found.is_executable("plots/deep/prog")


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, DIRECTORY, SOFT])
@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up", "a/..", "..\\up", "\\etc"])
def test_a_path_that_leaves_the_directory_is_refused(name, kind):
    archive = make("good", of(name, b"", type=kind, linkname="good"))
    check_refused("is not a path below a directory", archive)


NO_FILES = {
    "character device": tarfile.CHRTYPE,
    "block device": tarfile.BLKTYPE,
    "pipe": tarfile.FIFOTYPE,
    "sparse file": tarfile.GNUTYPE_SPARSE,
    "header for all members": tarfile.XGLTYPE,
    "Solaris": tarfile.SOLARIS_XHDTYPE,
    "another volume": b"M",
}


@pytest.mark.parametrize("kind", NO_FILES.values(), ids=NO_FILES)
def test_only_files_directories_and_links_are_taken(kind):
    check_refused("member 'x' is not a regular file", header(type=kind) + END)


def test_a_link_is_what_it_leads_to():
    links = [("hard", "./d/x"), ("harder", "hard")]
    soft = [("d/soft", "x"), ("d/up", "../hard"), ("softer", "d/soft")]
    archive = make("d/x", *(link(*each) for each in links), *(link(*each, SOFT) for each in soft))
    with opened(archive) as found:
        assert contents(found) == dict.fromkeys(
            ("d/x", "hard", "harder", "d/soft", "d/up", "softer"), b"data"
        )


def test_symbolic_links_that_lead_to_no_file_in_it_are_left_out(caplog):
    targets = ["nothing", "/etc/passwd", "../x", "d", "loop", "", "self/../x", "."]
    links = [link(f"l{at}", target, SOFT) for at, target in enumerate(targets)]
    links += [link("loop", "pool", SOFT), link("pool", "loop", SOFT)]
    with opened(make("d/x", *links)) as found:
        assert contents(found) == {"d/x": b"data"}
    assert "'l0' and 9 other symbolic links are left out" in caplog.text


def test_very_many_links_to_long_targets_are_followed_soon():
    steps = 12
    chain = [
        link(f"c{number}", f"{'a/../' * 150_000}c{number + 1}", SOFT) for number in range(steps)
    ]
    links = [link(f"l{number}", "c0", SOFT) for number in range(10_000)]
    with opened(make(*chain, *links, f"c{steps}"), max_files=30_000) as found:
        assert len(found.files) == steps + 10_000 + 1


@pytest.mark.parametrize("target", ["nothing", "/etc/passwd", "../x", "d", "late", "soft", ""])
def test_a_hard_link_to_no_file_before_it_is_refused(target):
    archive = make("x", directory("d"), link("soft", "x", SOFT), link("hard", target), "late")
    check_refused(f"'hard' is a link to {target!r}, which is not a file", archive)


SAME_NAMES = {
    "the same name": ("x", "x"),
    "spelled otherwise": ("x", ".//x"),
    "a directory": ("x", directory("x/")),
    "was one": (directory("x/"), "x"),
    "a link to itself": ("x", link("x", "x")),
}


@pytest.mark.parametrize("members", SAME_NAMES.values(), ids=SAME_NAMES)
def test_of_two_members_with_a_name_none_is_taken(members):
    check_refused("two members called 'x'", make(*members))


IN_A_FILE = {
    "a file with files": ("x", "x/y"),
    "the other way": ("x/y/z", "x"),
    "a link with files in it": (link("x", "/etc", SOFT), "x/passwd"),
}


@pytest.mark.parametrize("members", IN_A_FILE.values(), ids=IN_A_FILE)
def test_a_file_with_members_in_it_is_refused(members):
    check_refused("'x' is both a file and a directory", make(*members))


def test_a_directory_may_be_there_twice():
    with opened(make(directory("d/"), "d/x", directory("d/"))) as found:
        assert (found.files, found.directories) == (("d/x",), ("d",))


# -- too much


def test_links_to_one_file_count_as_often_as_they_are_extracted():
    links = [link(f"l{number}", "x") for number in range(20)]
    with (
        opened(make(of("x", bytes(100_000)), *links)) as archive,
        pytest.raises(OutputError, match=r"larger than 1000000 bytes \(unzip_max_bytes"),
    ):
        contents(archive)


@pytest.mark.parametrize("size", [10_000, 1 << 40, -512])
def test_a_size_beyond_the_archive_is_refused_unread(size):
    check_refused("it ends too soon", header(size=size) + b"x" * 512 + END)


def test_a_size_in_an_extended_header_counts():
    archive = extended(record(b"size", b"600")) + header(size=0) + padded(b"x" * 600) + END
    with opened(archive) as found:
        assert contents(found) == {"x": b"x" * 600}
    for size in (b"10000", b"9" * 5000):
        check_refused(UNREADABLE, extended(record(b"size", size)) + header(size=0) + END)


@pytest.mark.parametrize("size", [2_000_000, 1 << 33, -1])
@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_a_name_that_would_fill_the_memory_is_refused_unread(kind, size, tmp_path):
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.write(header(type=kind, size=size))
        file.truncate(1 << 34)  # without a block on the disk
    assert most_memory(lambda: check_refused(UNREADABLE, path)) < 1_000_000


def test_names_that_are_long_in_all_are_refused():
    archive = make(*(f"{'d/' * 40_000}{number}" for number in range(20)))
    check_refused("its members' names are too long", archive)


def test_headers_without_a_member_have_an_end():
    one = header(type=tarfile.GNUTYPE_LONGNAME, size=1) + padded(b"x")
    check_refused("a member's name is too long", one * 100_000)


def test_very_many_members_are_not_kept_in_memory(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"".join(header(str(number)) for number in range(2_000)) * 100 + END)
    what = "more than 1000 members"
    assert most_memory(lambda: check_refused(what, path, 1_000)) < 2_000_000


def test_directories_of_a_few_members_count():
    archive = make(*(f"{number}/{'x/' * 60}y" for number in range(5)))
    check_refused("more than 100 members", archive)


# -- damaged


NO_ARCHIVES = {
    "empty": b"",
    "a text": b"ERROR: no",
    "a long text": b"no" * 5000,
    "compressed": b"\x1f\x8b" + bytes(3000),
    "a name without a member": header(type=tarfile.GNUTYPE_LONGNAME) + END,
    "half a block": header()[:-1],
}


@pytest.mark.parametrize("data", NO_ARCHIVES.values(), ids=NO_ARCHIVES)
def test_what_is_no_archive_is_called_so(data):
    check_refused(UNREADABLE, data)


def test_an_archive_of_nothing_is_one():
    with opened(make()) as found:
        assert found.files == found.directories == ()


DAMAGED = {
    "no length": b"x path=y\n",
    "a length beyond its end": b"900 path=y\n",
    "no progress": b"0 path=y\n",
    "a negative length": b"-9 path=y\n",
    "a wrong length": b"9 path=yyyy\n",
    "no value": b"8 path y\n",
    "a sparse file": record(b"GNU.sparse.major", b"1"),
    "a long number": b"1" * 5000,
}


@pytest.mark.parametrize("records", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_extended_header_is_called_so(records):
    check_refused(UNREADABLE, extended(records) + header() + END)


def test_a_cut_archive_is_never_taken_for_a_complete_one():
    whole = make("x", of("y", b"2" * 1000), "/".join(["z" * 90] * 3))
    for size in range(0, len(whole.rstrip(b"\0")), 256):
        check_refused(UNREADABLE, whole[:size])


def test_an_archive_that_shrinks_while_it_is_read_is_called_damaged(tmp_path):
    path = tmp_path / "a"
    # Larger than what Python reads ahead: 128 KiB from 3.14 on.
    path.write_bytes(make(of("x", b"x" * 1_000_000)))
    with opened(path) as found:
        with path.open("r+b") as file:
            file.truncate(700_000)
        with pytest.raises(OutputError, match="member 'x' is damaged: it ends too soon"):
            contents(found)


# -- whatever comes


kinds = st.sampled_from([tarfile.REGTYPE, DIRECTORY, tarfile.LNKTYPE, SOFT])


@given(
    members=st.lists(st.tuples(names | tricky, kinds, names | tricky), min_size=1, max_size=5),
    form=st.sampled_from([GNU, PAX]),
)
def test_whatever_the_names_nothing_leaves_the_directory(members, form, tmp_path_factory):
    made = [of(name, b"", type=kind, linkname=target) for name, kind, target in members]
    with suppress(OutputError), opened(make(of("a"), *made, form=form)) as found:
        check_names(found, tmp_path_factory.getbasetemp())
        assert set(contents(found).values()) <= {b"", b"data"}


@given(names=st.lists(names, min_size=1, max_size=4, unique=True), form=st.sampled_from([GNU, PAX]))
def test_whatever_the_names_they_are_those_that_tarfile_reads(names, form):
    archive = make(*(of(name, name.encode()) for name in names), form=form)
    with tarfile.open(fileobj=io.BytesIO(archive)) as same:
        expected = {below(info.name) or "": same.extractfile(info).read() for info in same}
    with suppress(OutputError), opened(archive) as found:
        expected.pop("", None)
        assert contents(found) == expected


@given(at=st.integers(0, 4000), byte=st.integers(0, 255), cut=st.integers(0, 200))
def test_whatever_is_damaged_it_is_an_output_error(at, byte, cut):
    long = of("/".join(["z" * 90] * 3), b"3")
    members = ("x", long, link("hard", "x"), link("soft", "hard", SOFT))
    data = bytearray(make(*members, form=PAX))
    data[at % len(data)] = byte
    with suppress(OutputError), opened(bytes(data[: len(data) - cut])) as found:
        contents(found)
