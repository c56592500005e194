"""Input directories: whether they are still as they were, and the archives of them."""

import errno
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from shutil import which

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from boinc_gahp.errors import StagingError
from boinc_gahp.submit import generated_files, trees
from boinc_gahp.submit.digests import Seen
from boinc_gahp.submit.generated_files import GeneratedFiles, Member
from boinc_gahp.submit.trees import Entry, look
from tests.helpers import ran
from tests.submit.input_directories import LONG_AGO, contents, count_calls, pack, tree

parts = st.binary(min_size=1, max_size=40).filter(
    lambda part: b"/" not in part and b"\0" not in part and part not in (b".", b"..")
)
HARD = b"-rf --checkpoint-action=exec=sh '\"`$x \xc3\xb6 \\x ... @LongLink * -C \xff\xfe".split()
HARD += [b" ", b"a b", b"\n", b"a\nb", b"\r", b"n" * 255, b"a" * 100]
hard_parts = parts | st.sampled_from(HARD)
paths = st.lists(hard_parts, min_size=1, max_size=5).map(b"/".join)
#: Also such as end at the end of an archive's record, or near it.
file_contents = st.binary(max_size=2000) | st.sampled_from([8, 8.5, 9, 10]).map(
    lambda kib: bytes(int(kib * 1024))
)


def without_conflicts(files):
    """Leave out files whose name is a directory's, too."""
    above = {
        name[:end] for name in files for end in range(len(name)) if name[end : end + 1] == b"/"
    }
    return {name: content for name, content in files.items() if name not in above}


trees_of_files = st.dictionaries(paths, file_contents, max_size=5).map(without_conflicts)


def make(directory, files):
    directory.mkdir()
    for name, content in files.items():
        path = Path(os.fsdecode(os.fsencode(directory) + b"/" + name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def found_below(directory):
    root = os.fsencode(directory)
    return {
        os.fsencode(each)[len(root) + 1 :]: each.read_bytes()
        for each in directory.rglob("*")
        if each.is_file()
    }


def check_unpacking(files, directory, unpack):
    make(directory / "in", files)
    archive = pack(GeneratedFiles(directory / "made"), directory / "in", "")
    packed = archive.read_bytes()
    assert len(packed) % tarfile.RECORDSIZE == 0
    assert packed.endswith(bytes(1024))
    (directory / "out").mkdir()
    unpack(archive, directory / "out")
    assert found_below(directory / "out") == files


def unpack_with_python(archive, into):
    with tarfile.open(archive, encoding="utf-8", errors="surrogateescape") as opened:
        opened.extractall(into, filter="fully_trusted")


@given(trees_of_files)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_names_and_contents_are_packed(tmp_path_factory, files):
    check_unpacking(files, tmp_path_factory.mktemp("t"), unpack_with_python)


@pytest.mark.processes
@pytest.mark.parametrize("command", [["tar"], ["busybox", "tar"]], ids=["GNU", "busybox"])
@given(trees_of_files)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_packed_is_unpacked_by_tar(tmp_path_factory, command, files):
    if which(command[0]) is None:
        pytest.skip(f"there is no {command[0]}")

    def unpack(archive, into):
        run = subprocess.run(
            [*command, "-xf", str(archive), "-C", str(into)], capture_output=True, check=True
        )
        assert run.stderr == b""

    check_unpacking(files, tmp_path_factory.mktemp("t"), unpack)


def test_equal_trees_give_equal_bytes_wherever_and_whenever_they_were_made(made, tmp_path):
    files = {"b": b"1", "a/c": b"2", "a-b": b"3", "empty/": b""}
    one = tree(tmp_path / "one", files)
    other = tree(tmp_path / "elsewhere" / "two", dict(reversed(files.items())), LONG_AGO + 5)
    (one / "b").chmod(0o640)
    (other / "b").chmod(0o4604)
    (other / "a").chmod(0o700)
    packed = [pack(made, each).read_bytes() for each in (one, other)]
    assert packed[0] == packed[1]
    (other / "b").chmod(0o744)
    with tarfile.open(pack(made, other)) as opened:
        found = [(each.name, each.mode) for each in opened]
    names = ["model", "model/a", "model/a/c", "model/a-b", "model/b", "model/empty"]
    assert found == list(zip(names, (0o755, 0o755, 0o644, 0o644, 0o755, 0o755), strict=True))


def test_several_members_share_an_archive_and_the_last_of_a_name_is_taken(made, tmp_path):
    one = tree(tmp_path / "one", {"a": b"1", "b": b"1"})
    two = tree(tmp_path / "two", {"a": b"2", "c": b"2"})
    members = [Member("", str(one)), Member("", str(two)), Member("deep/down/b", str(one / "b"))]
    archive = Path(made.pack(members).path)
    assert contents(archive) == {"a": b"2", "b": b"1", "c": b"2", "deep/down/b": b"1"}


def test_a_name_that_is_a_file_and_a_directory_is_refused(made, tmp_path):
    one = tree(tmp_path / "one", {"a": b"1"})
    two = tree(tmp_path / "two", {"a/x": b"2"})
    file = Member("a/x/y", str(one / "a"))
    for members in ([Member("", str(one)), Member("", str(two))], [Member("", str(two)), file]):
        with pytest.raises(StagingError, match=r"would have the same name.*rename one"):
            made.pack(members)


@pytest.mark.parametrize("name", ["/a", "../a", "a/../b"])
def test_a_member_cannot_leave_the_archive(made, tmp_path, name):
    with pytest.raises(ValueError, match="not a name"):
        made.pack([Member(name, str(tree(tmp_path / "in", {})))])


def test_the_size_of_a_file_of_any_length_is_in_its_header():
    entry = Entry("x", "/nowhere", "file", Seen(9 << 30, 0, 0, 0))
    header = next(iter(generated_files._packed("x", entry)))
    assert tarfile.TarInfo.frombuf(header, "utf-8", "strict").size == 9 << 30


# Links.


def test_a_relative_link_that_stays_inside_is_kept_others_are_followed(made, tmp_path):
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


def test_a_member_that_is_a_link_itself_is_what_it_leads_to(made, tmp_path):
    tree(tmp_path / "in", {"a": b"1"})
    (tmp_path / "link").symlink_to("in")
    (tmp_path / "file").symlink_to("in/a")
    assert contents(pack(made, tmp_path / "link")) == {"model/a": b"1"}
    assert contents(pack(made, tmp_path / "file")) == {"model": b"1"}


@pytest.mark.parametrize("target", ["..", "../..", "../sub", "/{path}"])
def test_a_link_back_to_its_own_directory_is_refused(made, tmp_path, target):
    path = tree(tmp_path / "in", {"sub/b": b"2"})
    (path / "sub" / "back").symlink_to(target.format(path=path))
    with pytest.raises(StagingError, match=r"sub/back.* it is in itself: remove the link"):
        pack(made, path)


def test_a_link_that_leads_nowhere_and_out_is_reported_by_name(made, tmp_path):
    path = tree(tmp_path / "in", {})
    (path / "lost").symlink_to("/nowhere/at/all")
    with pytest.raises(StagingError, match="in/lost' cannot be read: No such file") as caught:
        pack(made, path)
    assert caught.value.errno == errno.ENOENT


def test_links_that_multiply_a_directory_end(made, tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "MOST_ENTRIES", 1000)
    path = tree(tmp_path / "in", {"d20/file": b""})
    for level in range(20):
        (path / f"d{level}").mkdir()
        for name in "ab":
            (path / f"d{level}" / name).symlink_to(f"../d{level + 1}")
    with pytest.raises(StagingError, match="more than 1,000 files and directories: pack them"):
        pack(made, path)


# What cannot be packed.


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_file_is_refused_by_name(made, tmp_path, kind):
    path = tree(tmp_path / "in", {"a": b"1"})
    if kind == "pipe":
        os.mkfifo(path / "special")
    else:
        (path / "special").symlink_to("/dev/null")
    with pytest.raises(StagingError, match="in/special' is not a regular file"):
        pack(made, path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_what_cannot_be_read_is_reported_with_the_systems_reason(made, tmp_path):
    for name in ("file", "directory/"):
        path = tree(tmp_path / f"in-{name}", {name: b""})
        (path / name).chmod(0)
        with pytest.raises(StagingError, match="cannot be read: ") as caught:
            pack(made, path)
        assert caught.value.errno == errno.EACCES


def test_a_missing_member_is_reported(made, tmp_path):
    for path in (tmp_path / "none", Path("/a\0b")):
        with pytest.raises(StagingError, match="cannot be read"):
            pack(made, path)


@pytest.mark.parametrize("how", ["grows", "shrinks", "is replaced", "vanishes", "gets a neighbour"])
def test_a_tree_that_changes_while_it_is_packed_is_an_error_and_leaves_no_file(made, tmp_path, how):
    path = tree(tmp_path / "in", {"a": b"x" * 3_000_000, "b": b"1"})
    (tmp_path / "new").write_bytes(b"2")
    os.utime(tmp_path / "new", (LONG_AGO, LONG_AGO))

    def change():
        if how == "grows":
            with (path / "a").open("ab") as file:
                file.write(b"more")
        elif how == "shrinks":
            os.truncate(path / "a", 1_500_000)
        elif how == "is replaced":
            # Only once: a second new file may get the first one's inode.
            if (tmp_path / "new").exists():
                (tmp_path / "new").replace(path / "b")
        elif how == "vanishes":
            (path / "b").unlink(missing_ok=True)
        else:
            (path / "c").write_bytes(b"2")

    with pytest.raises(StagingError, match=r"while it was read: submit|No such file") as caught:
        made.pack([Member("model", str(path))], change)
    assert caught.value.passes == (how != "vanishes")
    assert list((tmp_path / "state" / "made").iterdir()) == []


def test_packing_stops_when_it_is_told_to(made, tmp_path):
    def stop():
        raise KeyboardInterrupt

    path = tree(tmp_path / "in", {"a": b"x" * 3_000_000})
    with pytest.raises(KeyboardInterrupt):
        made.pack([Member("model", str(path))], stop)
    assert list((tmp_path / "state" / "made").iterdir()) == []


def linked(path, target):
    path.unlink()
    path.symlink_to(target)


CHANGES = {
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
def test_a_stamp_changes_with_the_tree(made, tmp_path, change):
    path = tree(tmp_path / "in", {"a": b"1", "sub/b": b"2"})
    (path / "l").symlink_to("a")
    stamp = look(str(path)).stamp
    assert look(str(path)).stamp == stamp
    made.pack([Member("model", str(path), stamp)])
    CHANGES[change](path)
    assert look(str(path)).stamp != stamp
    with pytest.raises(StagingError, match=r"'.*/in' changed since the job was submitted"):
        made.pack([Member("model", str(path), stamp)])


@pytest.mark.processes
def test_a_stamp_is_the_same_of_an_equal_tree_in_another_process(tmp_path):
    path, equal = (tree(tmp_path / name, {"a": b"1", "ü\udcff\n": b"2"}) for name in "xy")
    program = "import sys; from boinc_gahp.submit.trees import look; print(look(sys.argv[1]).stamp)"
    other = ran(sys.executable, "-c", program, equal)
    assert other.stdout.strip() == look(str(path)).stamp


def test_a_tree_that_many_jobs_share_is_not_looked_through_for_each(tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "_REST", 1e9)
    monkeypatch.setattr(trees, "_LONGEST_REST", 1e9)
    looked = count_calls(monkeypatch, trees, "walk")
    path = str(tree(tmp_path / "in", {"a": b"1"}))
    assert len({look(path).stamp for _ in range(1000)}) == 1
    assert looked == [path]


def test_a_tree_that_was_looked_at_before_it_changed_is_packed_as_its_job_saw_it(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(trees, "_REST", 1e9)
    monkeypatch.setattr(trees, "_LONGEST_REST", 1e9)
    path = tree(tmp_path / "in", {"a": b"1"})
    look(str(path))
    tree(path, {"a": b"22"})
    stamp = trees.stamp_of(trees.walk(str(path)))
    made = GeneratedFiles(tmp_path / "made")
    archive = made.pack([Member("model", str(path), stamp)])
    assert contents(archive.path) == {"model/a": b"22"}
