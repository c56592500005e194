"""Files that the program makes itself, and archives of input directories."""

from __future__ import annotations

import errno
import io
import os
import socket
import stat
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from boinc_gahp.errors import StagingError
from boinc_gahp.submit import MadeFiles, Member, made_files, tree_stamp, trees
from boinc_gahp.submit.checks import extension
from boinc_gahp.submit.digests import Seen
from boinc_gahp.submit.trees import Entry
from tests.helpers import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LONG_AGO = 1_700_000_000
DAY = 86_400.0


@pytest.fixture
def made(tmp_path: Path) -> MadeFiles:
    return MadeFiles(tmp_path / "state" / "made")


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories are looked through each time, as if the last time were long ago."""
    monkeypatch.setattr(trees, "_REST", 0.0)


def tree(directory: Path, files: dict[str, bytes], mtime: int = LONG_AGO) -> Path:
    """Make a directory of files by their names; those that end in a slash are directories."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
        else:
            path.write_bytes(content)
            os.utime(path, (mtime, mtime))
    return directory


def pack(made: MadeFiles, path: Path, name: str = "model") -> Path:
    return Path(made.pack([Member(str(path), name)]).path)


def names(archive: Path) -> list[str]:
    with tarfile.open(archive) as opened:
        return opened.getnames()


def contents(archive: Path) -> dict[str, bytes]:
    """Return the files in an archive."""
    with tarfile.open(archive) as opened:
        return {
            each.name: reader.read()
            for each in opened
            if each.isreg() and (reader := opened.extractfile(each)) is not None
        }


# Files that are written.


@pytest.mark.parametrize(
    "name", ["Dockerfile", "job.toml", "run.sh", "a.tar.gz", ".sh", "x.ö", "a/b.c"]
)
def test_a_written_file_has_its_content_and_gives_its_name_the_extension(
    made: MadeFiles, name: str
) -> None:
    file = made.write(name, b"content")
    assert Path(file.path).read_bytes() == b"content"
    assert extension(file.path) == extension(name)
    assert file.expected is None


def test_equal_contents_are_one_file_that_is_not_written_again(made: MadeFiles) -> None:
    path = made.write("run.sh", b"one").path
    before = Path(path).stat()
    assert made.write("other.sh", b"one").path == path
    assert Path(path).stat() == before
    assert len({made.write(name, b"one").path for name in ("a", "a.toml", "a.sh")}) == 3
    assert made.write("run.sh", b"two").path != path


@pytest.mark.parametrize("damage", [b"", b"on", b"xxx", b"longer"])
def test_a_damaged_file_is_written_again(made: MadeFiles, damage: bytes) -> None:
    path = Path(made.write("run.sh", b"one").path)
    path.write_bytes(damage)
    assert Path(made.write("run.sh", b"one").path).read_bytes() == b"one"


def test_nobody_else_can_read_made_files(made: MadeFiles, tmp_path: Path) -> None:
    path = Path(made.write("run.sh", b"one").path)
    archive = pack(made, tree(tmp_path / "in", {"a": b"1"}))
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, archive)] == [0o600] * 2


# Archives.

parts = st.binary(min_size=1, max_size=40).filter(
    lambda part: b"/" not in part and b"\0" not in part and part not in (b".", b"..")
)
hard_parts = st.one_of(
    parts,
    st.sampled_from(
        [
            b"-rf",
            b"--checkpoint-action=exec=sh",
            b" ",
            b"a b",
            b"\n",
            b"a\nb",
            b"\xff\xfe",
            b"'\"`$x",
            b"\xc3\xb6",
            b"\\x",
            b"...",
            b"n" * 255,
            b"@LongLink",
            b"*",
            b"-C",
            b"a" * 100,
            b"\r",
        ]
    ),
)
paths = st.lists(hard_parts, min_size=1, max_size=5).map(b"/".join)


def without_conflicts(files: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Leave out files whose name is a directory's, too."""
    above = {
        name[:end] for name in files for end in range(len(name)) if name[end : end + 1] == b"/"
    }
    return {name: content for name, content in files.items() if name not in above}


def make(directory: Path, files: dict[bytes, bytes]) -> None:
    directory.mkdir()
    for name, content in files.items():
        path = Path(os.fsdecode(os.fsencode(directory) + b"/" + name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def found_below(directory: Path) -> dict[bytes, bytes]:
    root = os.fsencode(directory)
    return {
        os.fsencode(each)[len(root) + 1 :]: each.read_bytes()
        for each in directory.rglob("*")
        if each.is_file()
    }


def check_unpacking(
    files: dict[bytes, bytes], directory: Path, unpack: Callable[[Path, Path], None]
) -> None:
    make(directory / "in", files)
    archive = pack(MadeFiles(directory / "made"), directory / "in", "")
    (directory / "out").mkdir()
    unpack(archive, directory / "out")
    assert found_below(directory / "out") == files


def unpack_with_python(archive: Path, into: Path) -> None:
    with tarfile.open(archive, encoding="utf-8", errors="surrogateescape") as opened:
        opened.extractall(into)


@given(st.dictionaries(paths, st.binary(max_size=2000), max_size=5).map(without_conflicts))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_names_and_contents_are_packed(
    tmp_path_factory: pytest.TempPathFactory, files: dict[bytes, bytes]
) -> None:
    check_unpacking(files, tmp_path_factory.mktemp("t"), unpack_with_python)


@pytest.mark.processes
@pytest.mark.parametrize(
    "command",
    [
        ["tar"],
        pytest.param(
            ["busybox", "tar"],
            marks=pytest.mark.skipif(which("busybox") is None, reason="there is no busybox"),
        ),
    ],
    ids=["GNU", "busybox"],
)
@given(st.dictionaries(paths, st.binary(max_size=2000), max_size=5).map(without_conflicts))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_packed_is_unpacked_by_tar(
    tmp_path_factory: pytest.TempPathFactory, command: list[str], files: dict[bytes, bytes]
) -> None:
    def unpack(archive: Path, into: Path) -> None:
        run = subprocess.run(
            [*command, "-xf", str(archive), "-C", str(into)], capture_output=True, check=True
        )
        assert run.stderr == b""

    check_unpacking(files, tmp_path_factory.mktemp("t"), unpack)


def test_equal_trees_give_equal_bytes_wherever_and_whenever_they_were_made(
    made: MadeFiles, tmp_path: Path
) -> None:
    files = {"b": b"1", "a/c": b"2", "a-b": b"3", "empty/": b""}
    one = tree(tmp_path / "one", files)
    other = tree(tmp_path / "elsewhere" / "two", dict(reversed(files.items())), LONG_AGO + 5)
    (one / "b").chmod(0o640)
    (other / "b").chmod(0o4604)
    (other / "a").chmod(0o700)
    packed = [pack(made, each).read_bytes() for each in (one, other)]
    assert packed[0] == packed[1]
    (other / "b").chmod(0o744)
    assert pack(made, other).read_bytes() != packed[0]


def test_members_are_sorted_of_1970_of_nobody_and_have_one_of_two_modes(
    made: MadeFiles, tmp_path: Path
) -> None:
    path = tree(tmp_path / "in", {"b": b"1", "a/x": b"2", "a.b": b"3", "run": b"4", "e/": b""})
    (path / "run").chmod(0o710)
    with tarfile.open(pack(made, path)) as opened:
        found = [(each.name, oct(each.mode)) for each in opened]
        assert {(each.mtime, each.uid, each.gid, each.uname, each.gname) for each in opened} == {
            (0, 0, 0, "", "")
        }
    assert found == [
        ("model", "0o755"),
        ("model/a", "0o755"),
        ("model/a/x", "0o644"),
        ("model/a.b", "0o644"),
        ("model/b", "0o644"),
        ("model/e", "0o755"),
        ("model/run", "0o755"),
    ]


def test_several_members_share_an_archive_and_the_last_of_a_name_is_taken(
    made: MadeFiles, tmp_path: Path
) -> None:
    one = tree(tmp_path / "one", {"a": b"1", "b": b"1"})
    two = tree(tmp_path / "two", {"a": b"2", "c": b"2"})
    members = [Member(str(one), ""), Member(str(two), ""), Member(str(one / "b"), "deep/down/b")]
    archive = Path(made.pack(members).path)
    assert contents(archive) == {"a": b"2", "b": b"1", "c": b"2", "deep/down/b": b"1"}


def test_a_name_that_is_a_file_and_a_directory_is_refused(made: MadeFiles, tmp_path: Path) -> None:
    one = tree(tmp_path / "one", {"a": b"1"})
    two = tree(tmp_path / "two", {"a/x": b"2"})
    file = Member(str(one / "a"), "a/x/y")
    for members in ([Member(str(one), ""), Member(str(two), "")], [Member(str(two), ""), file]):
        with pytest.raises(StagingError, match=r"would have the same name.*rename one"):
            made.pack(members)


@pytest.mark.parametrize("name", ["/a", "../a", "a/../b"])
def test_a_member_cannot_leave_the_archive(made: MadeFiles, tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        made.pack([Member(str(tree(tmp_path / "in", {})), name)])


def test_the_size_of_a_file_of_any_length_is_in_its_header() -> None:
    entry = Entry("x", "/nowhere", "file", Seen(9 << 30, 0, 0, 0))
    header = next(iter(made_files._packed("x", entry)))
    assert tarfile.TarInfo.frombuf(header, "utf-8", "strict").size == 9 << 30


def test_an_archive_ends_as_tar_ends_it(made: MadeFiles, tmp_path: Path) -> None:
    for size in (0, 1, 512, 8 * 1024, 9 * 1024, 10 * 1024):
        archive = pack(made, tree(tmp_path / str(size), {"a": b"x" * size}))
        packed = archive.read_bytes()
        assert len(packed) % tarfile.RECORDSIZE == 0
        assert packed.endswith(bytes(1024))
        with tarfile.open(fileobj=io.BytesIO(packed)) as opened:
            assert opened.getmember("model/a").size == size


# Links.


def test_a_relative_link_that_stays_inside_is_kept_others_are_followed(
    made: MadeFiles, tmp_path: Path
) -> None:
    outside = tree(tmp_path / "outside", {"o": b"out", "d/p": b"deep"})
    path = tree(tmp_path / "in", {"a": b"1", "sub/b": b"2"})
    (path / "kept").symlink_to("sub/b")
    (path / "kept-directory").symlink_to("sub")
    (path / "kept-nowhere").symlink_to("nowhere")
    (path / "sub" / "up").symlink_to("../a")
    (path / "absolute").symlink_to(path / "a")
    (path / "out").symlink_to(outside / "o")
    (path / "out-directory").symlink_to(outside)
    archive = pack(made, path, "")
    with tarfile.open(archive) as opened:
        links = {each.name: each.linkname for each in opened if each.issym()}
    assert links == {"kept": "sub/b", "kept-directory": "sub", "kept-nowhere": "nowhere"}
    assert contents(archive) == {
        "a": b"1",
        "absolute": b"1",
        "out": b"out",
        "out-directory/d/p": b"deep",
        "out-directory/o": b"out",
        "sub/b": b"2",
        "sub/up": b"1",
    }


def test_a_member_that_is_a_link_itself_is_what_it_leads_to(
    made: MadeFiles, tmp_path: Path
) -> None:
    tree(tmp_path / "in", {"a": b"1"})
    (tmp_path / "link").symlink_to("in")
    (tmp_path / "file").symlink_to("in/a")
    assert contents(pack(made, tmp_path / "link")) == {"model/a": b"1"}
    assert contents(pack(made, tmp_path / "file")) == {"model": b"1"}


@pytest.mark.parametrize("target", ["..", "../..", "../sub", "/{path}"])
def test_a_link_back_to_its_own_directory_is_refused(
    made: MadeFiles, tmp_path: Path, target: str
) -> None:
    path = tree(tmp_path / "in", {"sub/b": b"2"})
    (path / "sub" / "back").symlink_to(target.format(path=path))
    with pytest.raises(StagingError, match=r"sub/back.* it is in itself: remove the link"):
        pack(made, path)


def test_a_link_that_leads_nowhere_and_out_is_reported_by_name(
    made: MadeFiles, tmp_path: Path
) -> None:
    path = tree(tmp_path / "in", {})
    (path / "lost").symlink_to("/nowhere/at/all")
    with pytest.raises(StagingError, match="in/lost' cannot be read: No such file") as caught:
        pack(made, path)
    assert caught.value.errno == errno.ENOENT


def test_links_that_multiply_a_directory_end(
    made: MadeFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "MOST_ENTRIES", 1000)
    path = tree(tmp_path / "in", {"d20/file": b""})
    for level in range(20):
        (path / f"d{level}").mkdir()
        for name in "ab":
            (path / f"d{level}" / name).symlink_to(f"../d{level + 1}")
    with pytest.raises(StagingError, match="more than 1,000 files and directories: pack them"):
        pack(made, path)


# What cannot be packed.


@pytest.fixture
def special(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Return a directory with a file of a kind."""
    opened = socket.socket(socket.AF_UNIX)

    def make(kind: str) -> Path:
        path = tree(tmp_path / "in", {"a": b"1"})
        if kind == "pipe":
            os.mkfifo(path / "special")
        elif kind == "socket":
            opened.bind(str(path / "special"))
        else:
            (path / "special").symlink_to("/dev/null")
        return path

    yield make
    opened.close()


@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_what_is_no_file_is_refused_by_name(
    made: MadeFiles, special: Callable[[str], Path], kind: str
) -> None:
    with pytest.raises(StagingError, match="in/special' is not a regular file"):
        pack(made, special(kind))


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_what_cannot_be_read_is_reported_with_the_systems_reason(
    made: MadeFiles, tmp_path: Path
) -> None:
    for name in ("file", "directory/"):
        path = tree(tmp_path / f"in-{name}", {name: b""})
        (path / name).chmod(0)
        with pytest.raises(StagingError, match="cannot be read: ") as caught:
            pack(made, path)
        assert caught.value.errno == errno.EACCES


def test_a_missing_member_is_reported(made: MadeFiles, tmp_path: Path) -> None:
    for path in (tmp_path / "none", Path("/a\0b")):
        with pytest.raises(StagingError, match="cannot be read"):
            pack(made, path)


@pytest.mark.parametrize("how", ["grows", "shrinks", "is replaced", "vanishes", "gets a neighbour"])
def test_a_tree_that_changes_while_it_is_packed_is_an_error_and_leaves_no_file(
    made: MadeFiles, tmp_path: Path, how: str
) -> None:
    path = tree(tmp_path / "in", {"a": b"x" * 3_000_000, "b": b"1"})

    def change() -> None:
        if how == "grows":
            with (path / "a").open("ab") as file:
                file.write(b"more")
        elif how == "shrinks":
            os.truncate(path / "a", 1_500_000)
        elif how == "is replaced":
            (path / "c").write_bytes(b"2")
            os.utime(path / "c", (LONG_AGO, LONG_AGO))
            (path / "c").replace(path / "b")
        elif how == "vanishes":
            (path / "b").unlink(missing_ok=True)
        else:
            (path / "c").write_bytes(b"2")

    with pytest.raises(StagingError, match=r"changed while it was read: submit|No such file"):
        made.pack([Member(str(path), "model")], change)
    assert list((tmp_path / "state" / "made").iterdir()) == []


def test_packing_stops_when_it_is_told_to(made: MadeFiles, tmp_path: Path) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    path = tree(tmp_path / "in", {"a": b"x" * 3_000_000})
    with pytest.raises(KeyboardInterrupt):
        made.pack([Member(str(path), "model")], stop)
    assert list((tmp_path / "state" / "made").iterdir()) == []


# Stamps.


def linked(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a new file": lambda path: (path / "new").write_bytes(b""),
    "a new directory": lambda path: (path / "new").mkdir(),
    "a removed file": lambda path: (path / "a").unlink(),
    "another name": lambda path: (path / "a").rename(path / "z"),
    "another size": lambda path: tree(path, {"a": b"longer"}),
    "another time": lambda path: os.utime(path / "sub" / "b", (LONG_AGO, LONG_AGO + 1)),
    "another mode": lambda path: (path / "a").chmod(0o755),
    "another target": lambda path: linked(path / "l", "sub/b"),
    "a link, not a file": lambda path: linked(path / "a", "sub/b"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_stamp_changes_with_the_tree(made: MadeFiles, tmp_path: Path, change: str) -> None:
    path = tree(tmp_path / "in", {"a": b"1", "sub/b": b"2"})
    (path / "l").symlink_to("a")
    stamp = tree_stamp(str(path))
    assert tree_stamp(str(path)) == stamp
    made.pack([Member(str(path), "model", stamp)])
    CHANGES[change](path)
    assert tree_stamp(str(path)) != stamp
    with pytest.raises(StagingError, match=r"'.*/in' changed since the job was submitted"):
        made.pack([Member(str(path), "model", stamp)])


def test_a_restored_tree_has_the_same_stamp(tmp_path: Path) -> None:
    files = {"a": b"1", "sub/b": b"2"}
    one, two = tree(tmp_path / "one", files), tree(tmp_path / "two", files)
    assert tree_stamp(str(one)) == tree_stamp(str(two))


@pytest.mark.processes
def test_a_stamp_is_the_same_in_another_process(tmp_path: Path) -> None:
    path = tree(tmp_path / "in", {"a": b"1", "ü\udcff\n": b"2"})
    program = "import sys; from boinc_gahp.submit import tree_stamp; print(tree_stamp(sys.argv[1]))"
    other = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == tree_stamp(str(path))


def test_a_tree_that_many_jobs_share_is_not_looked_through_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "_REST", 1e9)
    monkeypatch.setattr(trees, "_LONGEST_REST", 1e9)
    looked = count_calls(monkeypatch, trees, "walk")
    path = str(tree(tmp_path / "in", {"a": b"1"}))
    assert len({tree_stamp(path) for _ in range(1000)}) == 1
    assert looked == [path]


def count_calls(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> list[object]:
    """Return a list that gets the first argument of each call of a function."""
    calls: list[object] = []
    real = getattr(module, name)

    def noted(first: object, *more: object) -> object:
        calls.append(first)
        return real(first, *more)

    monkeypatch.setattr(module, name, noted)
    return calls


# Once for many.


def settled(path: Path) -> None:
    """Wait until the clock has ticked after the last change."""
    newest = max(each.stat().st_ctime_ns for each in path.rglob("*"))
    wait_for(lambda: time.time_ns() > newest, "a tick")


def test_threads_and_processes_that_share_a_tree_pack_it_once(
    made: MadeFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "SETTLED", 0)
    path = tree(tmp_path / "in", {"a": b"x" * 2_000_000})
    settled(path)
    packed = count_calls(monkeypatch, made_files, "_tar")
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(pack(made, path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found.append(pack(MadeFiles(tmp_path / "state" / "made"), path))
    assert len(found) == 9
    assert len(set(found)) == len(packed) == 1


def test_another_tree_of_the_same_names_sizes_and_times_is_another_archive(
    made: MadeFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "SETTLED", 0)
    one, two = tree(tmp_path / "one", {"a": b"1"}), tree(tmp_path / "two", {"a": b"2"})
    settled(one)
    settled(two)
    assert [contents(pack(made, each)) for each in (one, two)] == [
        {"model/a": b"1"},
        {"model/a": b"2"},
    ]


def test_a_file_that_changes_within_a_tick_of_the_clock_is_packed_again(
    made: MadeFiles, tmp_path: Path
) -> None:
    path = tree(tmp_path / "in", {"a": b"1"})
    one = pack(made, path)
    tree(path, {"a": b"2"})
    assert contents(pack(made, path)) == {"model/a": b"2"}
    assert contents(one) == {"model/a": b"1"}


# Cleaning.


def age(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


def test_what_was_not_used_for_long_is_removed_and_temporary_files_too(
    made: MadeFiles, tmp_path: Path
) -> None:
    assert made.clean(DAY) == 0
    old = Path(made.write("old.sh", b"old").path)
    left = old.with_name("x.tar.0123.new")
    left.write_bytes(b"part")
    new = Path(made.write("new.sh", b"new").path)
    archive = pack(made, tree(tmp_path / "in", {"a": b"1"}))
    age(old, 2 * DAY)
    age(left, 2 * DAY)
    age(new, DAY / 2)
    assert made.clean(DAY) == 2
    assert sorted(old.parent.iterdir()) == sorted([new, archive])


def test_a_use_keeps_a_file_and_does_not_change_its_time_of_modification(
    made: MadeFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "SETTLED", 0)
    path = tree(tmp_path / "in", {"a": b"1"})
    settled(path)
    files = [Path(made.write("run.sh", b"x").path), pack(made, path)]
    for file in files:
        age(file, 3 * DAY)
    before = [file.stat().st_mtime_ns for file in files]
    assert [Path(made.write("run.sh", b"x").path), pack(made, path)] == files
    assert made.clean(DAY) == 0
    assert [file.stat().st_mtime_ns for file in files] == before


def test_a_removed_file_is_made_again(made: MadeFiles, tmp_path: Path) -> None:
    path = tree(tmp_path / "in", {"a": b"1"})
    for _ in range(2):
        written, archive = Path(made.write("run.sh", b"x").path), pack(made, path)
        assert written.read_bytes() == b"x"
        assert contents(archive) == {"model/a": b"1"}
        age(written, 3 * DAY)
        age(archive, 3 * DAY)
        made.clean(DAY)
        assert not written.exists()


# Trouble with the disk.

_LIMITED = """
import resource, signal, sys
from pathlib import Path
from boinc_gahp.submit import MadeFiles, Member
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
made = MadeFiles(Path(sys.argv[1]) / "made")
for make in (
    lambda: made.write("a.sh", b"x" * 2000),
    lambda: made.pack([Member(sys.argv[1] + "/in", "model")]),
):
    try:
        make()
    except Exception as error:
        print(type(error).__name__, error.errno, error)
"""


@pytest.mark.processes
def test_a_file_that_cannot_be_written_leaves_nothing_and_says_so(tmp_path: Path) -> None:
    tree(tmp_path / "in", {"a": b"x" * 5000})
    run = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    lines = run.stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith(f"StagingError {errno.EFBIG} the files that boinc_gahp makes for ")
        assert f"cannot be written to '{tmp_path}/made': File too large" in line
    assert list((tmp_path / "made").iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_is_told_with_the_directory_and_the_remedy(
    made: MadeFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """No disk is full here: the system's call says so."""
    path = tree(tmp_path / "in", {"a": b"1"})

    def full(*_: object, **__: object) -> object:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(made_files, "whole_file", full)
    makes: Sequence[Callable[[], object]] = (
        lambda: made.write("a", b"x"),
        lambda: pack(made, path),
    )
    for each in makes:
        with pytest.raises(StagingError) as caught:
            each()
        assert caught.value.errno == number
        assert caught.value.path == str(tmp_path / "state" / "made")
        assert f"state/made': {os.strerror(number)}" in str(caught.value)
        assert ("free some space there" in str(caught.value)) == (number != errno.EIO)


def test_a_directory_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made").chmod(0o777)
    with pytest.raises(StagingError, match="can be written by everyone"):
        MadeFiles(tmp_path / "made").write("a", b"x")
