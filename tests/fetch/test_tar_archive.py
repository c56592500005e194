"""Tar archives that a volunteer may send."""

import io
import subprocess
import tarfile
import tracemalloc
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch._tar_archive import TarArchive
from boinc_gahp.fetch.names import below
from tests.fetch.archives import check_names, contents, leading_out, names, tricky

WHAT = "the archive of the outputs of job 'j'"

FORMATS = pytest.mark.parametrize(
    "form",
    [
        pytest.param(tarfile.USTAR_FORMAT, id="ustar"),
        pytest.param(tarfile.GNU_FORMAT, id="gnu"),
        pytest.param(tarfile.PAX_FORMAT, id="pax"),
    ],
)


@contextmanager
def opened(path, max_files=100, max_bytes=1_000_000):
    with (
        path.open("rb") as file,
        TarArchive(file, WHAT, max_files=max_files, max_bytes=max_bytes) as archive,
    ):
        yield archive


def of(name, data=b"data", **more):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def link(name, target, kind=tarfile.LNKTYPE):
    return of(name, b"", type=kind, linkname=target)


def make(path, *members, form=tarfile.GNU_FORMAT):
    with tarfile.open(path, "w", format=form, errors="surrogateescape") as archive:
        for member in members:
            info, data = of(member) if isinstance(member, str) else member
            archive.addfile(info, io.BytesIO(data))
    return path


def header(name="x", **fields):
    """Return the block before a member's contents, which may tell anything."""
    info, _ = of(name, b"")
    for key, value in fields.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def padded(data):
    return data + bytes(-len(data) % tarfile.BLOCKSIZE)


END = bytes(2 * tarfile.BLOCKSIZE)


def extended(*records):
    """Return an extended header (POSIX, "pax Extended Header") with these records."""
    data = b"".join(records)
    return header(name="PaxHeaders/x", type=tarfile.XHDTYPE, size=len(data)) + padded(data)


def record(key, value):
    rest = b" " + key + b"=" + value + b"\n"
    size = len(rest)
    while len(str(size)) + len(rest) != size:
        size = len(str(size)) + len(rest)
    return str(size).encode() + rest


@FORMATS
def test_files_and_directories_are_listed_and_read(form, tmp_path):
    long = f"dir/{'x' * 80}/{'y' * 90}"
    members = [
        of("./", b"", type=tarfile.DIRTYPE),
        of("one", b"1" * 3_000_000),
        of("./dir/two", b"", mode=0o755),
        of("empty/", b"", type=tarfile.DIRTYPE),
        of(long, b"3"),
        of("old", b"4", type=tarfile.AREGTYPE),
    ]
    with opened(make(tmp_path / "a", *members, form=form), max_bytes=10_000_000) as found:
        assert found.files == ("one", "dir/two", long, "old")
        assert found.directories == ("empty",)
        assert contents(found) == {"one": b"1" * 3_000_000, "dir/two": b"", long: b"3", "old": b"4"}
        assert [name for name in found.files if found.is_executable(name)] == ["dir/two"]


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT], ids=["gnu", "pax"])
def test_names_may_be_long_and_have_any_bytes(form, tmp_path):
    names = [
        "/".join(["d" * 200] * 15) + "/end",
        "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
        "\udcff",
    ]
    members = [of(name) for name in names]
    with opened(make(tmp_path / "a", *members, form=form)) as found:
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


@leading_out
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE])
def test_a_path_that_leaves_the_directory_is_refused(name, kind, tmp_path):
    path = make(tmp_path / "a", "good", of(name, b"", type=kind, linkname="good"))
    with pytest.raises(OutputError, match="is not a path below a directory"), opened(path):
        pass


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(tarfile.CHRTYPE, id="character device"),
        pytest.param(tarfile.BLKTYPE, id="block device"),
        pytest.param(tarfile.FIFOTYPE, id="pipe"),
        pytest.param(tarfile.GNUTYPE_SPARSE, id="sparse file"),
        pytest.param(tarfile.XGLTYPE, id="header for all members"),
        pytest.param(tarfile.SOLARIS_XHDTYPE, id="Solaris"),
        pytest.param(b"M", id="another volume"),
    ],
)
def test_only_files_directories_and_links_are_taken(kind, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(header(type=kind) + END)
    with pytest.raises(OutputError, match="member 'x' is not a regular file"), opened(path):
        pass


def test_a_link_is_what_it_leads_to(tmp_path):
    soft = tarfile.SYMTYPE
    path = make(
        tmp_path / "a",
        "d/x",
        link("hard", "./d/x"),
        link("harder", "hard"),
        link("d/soft", "x", soft),
        link("d/up", "../hard", soft),
        link("softer", "d/soft", soft),
    )
    with opened(path) as found:
        assert contents(found) == dict.fromkeys(
            ("d/x", "hard", "harder", "d/soft", "d/up", "softer"), b"data"
        )


def test_symbolic_links_that_lead_to_no_file_in_it_are_left_out(tmp_path, caplog):
    targets = ["nothing", "/etc/passwd", "../x", "d", "loop", "", "self/../x", "."]
    links = [link(f"l{at}", target, tarfile.SYMTYPE) for at, target in enumerate(targets)]
    links += [link("loop", "pool", tarfile.SYMTYPE), link("pool", "loop", tarfile.SYMTYPE)]
    with opened(make(tmp_path / "a", "d/x", *links)) as found:
        assert contents(found) == {"d/x": b"data"}
    assert "'l0' and 9 other symbolic links are left out" in caplog.text


def test_very_many_links_to_long_targets_are_followed_soon(tmp_path):
    steps = 12
    chain = [
        link(f"c{number}", f"{'a/../' * 150_000}c{number + 1}", tarfile.SYMTYPE)
        for number in range(steps)
    ]
    links = [link(f"l{number}", "c0", tarfile.SYMTYPE) for number in range(10_000)]
    path = make(tmp_path / "a", *chain, *links, f"c{steps}")
    with opened(path, max_files=30_000) as found:
        assert len(found.files) == steps + 10_000 + 1


@pytest.mark.parametrize("target", ["nothing", "/etc/passwd", "../x", "d", "late", "soft", ""])
def test_a_hard_link_to_no_file_before_it_is_refused(target, tmp_path):
    directory = of("d", b"", type=tarfile.DIRTYPE)
    members = ("x", directory, link("soft", "x", tarfile.SYMTYPE), link("hard", target), "late")
    with (
        pytest.raises(OutputError, match=f"'hard' is a link to {target!r}, which is not a file"),
        opened(make(tmp_path / "a", *members)),
    ):
        pass


@pytest.mark.parametrize(
    ("members", "why"),
    [
        pytest.param(("x", "x"), "two members called 'x'", id="the same name"),
        pytest.param(("x", ".//x"), "two members called 'x'", id="spelled otherwise"),
        pytest.param(("x", of("x/", b"", type=b"5")), "two members called 'x'", id="a directory"),
        pytest.param((of("x/", b"", type=b"5"), "x"), "two members called 'x'", id="was one"),
        pytest.param(("x", link("x", "x")), "two members called 'x'", id="a link to itself"),
        pytest.param(("x", "x/y"), "'x' is both a file and a directory", id="a file with files"),
        pytest.param(("x/y/z", "x"), "'x' is both a file and a directory", id="the other way"),
        pytest.param(
            (link("x", "/etc", b"2"), "x/passwd"), "'x' is both", id="a link with files in it"
        ),
    ],
)
def test_members_that_exclude_each_other_are_refused(members, why, tmp_path):
    with pytest.raises(OutputError, match=why), opened(make(tmp_path / "a", *members)):
        pass


def test_a_directory_may_be_there_twice(tmp_path):
    directory = of("d/", b"", type=tarfile.DIRTYPE)
    with opened(make(tmp_path / "a", directory, "d/x", directory)) as found:
        assert (found.files, found.directories) == (("d/x",), ("d",))


# -- too much


def test_links_to_one_file_count_as_often_as_they_are_extracted(tmp_path):
    links = [link(f"l{number}", "x") for number in range(20)]
    path = make(tmp_path / "a", of("x", bytes(100_000)), *links)
    with (
        opened(path, max_bytes=1_000_000) as archive,
        pytest.raises(OutputError, match=r"larger than 1000000 bytes \(unzip_max_bytes"),
    ):
        contents(archive)


def test_a_size_beyond_the_archive_is_refused_unread(tmp_path):
    path = tmp_path / "a"
    for size in (10_000, 1 << 40, -512):
        path.write_bytes(header(size=size) + b"x" * 512 + END)
        with pytest.raises(OutputError, match="it ends too soon"), opened(path):
            pass


def test_a_size_in_an_extended_header_counts(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(extended(record(b"size", b"600")) + header(size=0) + padded(b"x" * 600) + END)
    with opened(path) as found:
        assert contents(found) == {"x": b"x" * 600}
    for size in (b"10000", b"9" * 5000):
        path.write_bytes(extended(record(b"size", size)) + header(size=0) + END)
        with pytest.raises(OutputError, match="is not a readable tar archive"), opened(path):
            pass


@pytest.mark.parametrize("size", [2_000_000, 1 << 33, -1])
@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_a_name_that_would_fill_the_memory_is_refused_unread(kind, size, tmp_path):
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.write(header(type=kind, size=size))
        file.truncate(1 << 34)  # without a block on the disk
    tracemalloc.start()
    try:
        with pytest.raises(OutputError, match="is not a readable tar archive"), opened(path):
            pass
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_names_that_are_long_in_all_are_refused(tmp_path):
    members = [f"{'d/' * 40_000}{number}" for number in range(20)]
    with (
        pytest.raises(OutputError, match="its members' names are too long"),
        opened(make(tmp_path / "a", *members)),
    ):
        pass


def test_headers_without_a_member_have_an_end(tmp_path):
    path = tmp_path / "a"
    path.write_bytes((header(type=tarfile.GNUTYPE_LONGNAME, size=1) + padded(b"x")) * 100_000)
    with pytest.raises(OutputError, match="a member's name is too long"), opened(path):
        pass


def test_very_many_members_are_not_kept_in_memory(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"".join(header(name=str(number)) for number in range(2_000)) * 100 + END)
    tracemalloc.start()
    try:
        with pytest.raises(OutputError, match="more than 1000 members"), opened(path, 1_000):
            pass
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_directories_of_a_few_members_count(tmp_path):
    path = make(tmp_path / "a", *(f"{number}/{'x/' * 60}y" for number in range(5)))
    with pytest.raises(OutputError, match="more than 100 members"), opened(path):
        pass


# -- damaged


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"ERROR: no", id="a text"),
        pytest.param(b"no" * 5000, id="a long text"),
        pytest.param(b"\x1f\x8b" + bytes(3000), id="compressed"),
        pytest.param(header(type=tarfile.GNUTYPE_LONGNAME) + END, id="a name without a member"),
        pytest.param(header()[:-1], id="half a block"),
    ],
)
def test_what_is_no_archive_is_called_so(data, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(data)
    with pytest.raises(OutputError, match="is not a readable tar archive"), opened(path):
        pass


def test_an_archive_of_nothing_is_one(tmp_path):
    with opened(make(tmp_path / "a")) as found:
        assert found.files == found.directories == ()


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(b"x path=y\n", id="no length"),
        pytest.param(b"900 path=y\n", id="a length beyond its end"),
        pytest.param(b"0 path=y\n", id="no progress"),
        pytest.param(b"-9 path=y\n", id="a negative length"),
        pytest.param(b"9 path=yyyy\n", id="a wrong length"),
        pytest.param(b"8 path y\n", id="no value"),
        pytest.param(record(b"GNU.sparse.major", b"1"), id="a sparse file"),
        pytest.param(b"1" * 5000, id="a long number"),
    ],
)
def test_a_damaged_extended_header_is_called_so(records, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(extended(records) + header() + END)
    with pytest.raises(OutputError, match="is not a readable tar archive"), opened(path):
        pass


def test_a_cut_archive_is_never_taken_for_a_complete_one(tmp_path):
    whole = make(tmp_path / "a", "x", of("y", b"2" * 1000), "/".join(["z" * 90] * 3)).read_bytes()
    path = tmp_path / "b"
    end = len(whole.rstrip(b"\0"))
    for size in range(0, end, 256):
        path.write_bytes(whole[:size])
        with pytest.raises(OutputError, match="is not a readable tar archive"), opened(path):
            pass


def test_an_archive_that_shrinks_while_it_is_read_is_called_damaged(tmp_path):
    path = make(tmp_path / "a", of("x", b"x" * 100_000))
    with opened(path) as found:
        with path.open("r+b") as file:
            file.truncate(70_000)
        with pytest.raises(OutputError, match="member 'x' is damaged: it ends too soon"):
            contents(found)


# -- whatever comes


kinds = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE])


@given(
    members=st.lists(st.tuples(names | tricky, kinds, names | tricky), min_size=1, max_size=5),
    form=st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
)
def test_whatever_the_names_nothing_leaves_the_directory(members, form, tmp_path_factory):
    root = tmp_path_factory.getbasetemp()
    made = [of(name, b"", type=kind, linkname=target) for name, kind, target in members]
    path = make(root / "hypothesis.tar", of("a", b"data"), *made, form=form)
    with suppress(OutputError), opened(path) as found:
        check_names(found, root)
        assert set(contents(found).values()) <= {b"", b"data"}


@given(names=st.lists(names, min_size=1, max_size=4, unique=True))
def test_whatever_the_names_they_are_those_that_tarfile_reads(names, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "same.tar"
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        make(path, *(of(name, name.encode()) for name in names), form=form)
        with tarfile.open(path) as same:
            expected = {}
            for info in same:
                file = same.extractfile(info)
                assert file is not None
                expected[below(info.name) or ""] = file.read()
        with suppress(OutputError), opened(path) as found:
            expected.pop("", None)
            assert contents(found) == expected


@given(at=st.integers(0, 4000), byte=st.integers(0, 255), cut=st.integers(0, 200))
def test_whatever_is_damaged_it_is_an_output_error(at, byte, cut, tmp_path_factory):
    root = tmp_path_factory.getbasetemp()
    long = of("/".join(["z" * 90] * 3), b"3")
    members = ("x", long, link("hard", "x"), link("soft", "hard", tarfile.SYMTYPE))
    data = bytearray(make(root / "sane.tar", *members, form=tarfile.PAX_FORMAT).read_bytes())
    data[at % len(data)] = byte
    path = root / "damaged.tar"
    path.write_bytes(data[: len(data) - cut])
    with suppress(OutputError), opened(path) as found:
        contents(found)
