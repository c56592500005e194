"""Files that the program makes itself: written once, kept while they are used, removed."""

import errno
import os
import stat
import time
from pathlib import Path

import pytest

from boinc_gahp.errors import StagingError
from boinc_gahp.submit import generated_files, trees
from boinc_gahp.submit.checks import extension
from boinc_gahp.submit.generated_files import GeneratedFiles
from tests.helpers import at_once, files_up_to, wait_for
from tests.submit.input_directories import contents, count_calls, pack, tree

DAY = 86_400.0


# Files that are written.


@pytest.mark.parametrize(
    "name", ["Dockerfile", "job.toml", "run.sh", "a.tar.gz", ".sh", "x.ö", "a/b.c"]
)
def test_a_written_file_has_its_content_and_gives_its_name_the_extension(made, name):
    file = made.write(name, b"content")
    assert Path(file.path).read_bytes() == b"content"
    assert extension(file.path) == extension(name)
    assert file.expected is None


def test_equal_contents_are_one_file_that_is_not_written_again(made):
    path = made.write("run.sh", b"one").path
    before = Path(path).stat()
    assert made.write("other.sh", b"one").path == path
    assert Path(path).stat() == before
    assert len({made.write(name, b"one").path for name in ("a", "a.toml", "a.sh")}) == 3
    assert made.write("run.sh", b"two").path != path


@pytest.mark.parametrize("damage", [b"", b"on", b"xxx", b"longer"])
def test_a_damaged_file_is_written_again(made, damage):
    path = Path(made.write("run.sh", b"one").path)
    path.write_bytes(damage)
    assert Path(made.write("run.sh", b"one").path).read_bytes() == b"one"


def test_nobody_else_can_read_made_files(made, tmp_path):
    path = Path(made.write("run.sh", b"one").path)
    archive = pack(made, tree(tmp_path / "in", {"a": b"1"}))
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, archive)] == [0o600] * 2


# Once for many.


def settled(path):
    """Wait until the clock has ticked after the last change."""
    newest = max(each.stat().st_ctime_ns for each in path.rglob("*"))
    wait_for(lambda: time.time_ns() > newest, "a tick")


def test_threads_and_processes_that_share_a_tree_pack_it_once(made, tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "SETTLED", 0)
    path = tree(tmp_path / "in", {"a": b"x" * 2_000_000})
    settled(path)
    packed = count_calls(monkeypatch, generated_files, "_tar")
    found = at_once(lambda _: pack(made, path), range(8))
    found.append(pack(GeneratedFiles(tmp_path / "state" / "made"), path))
    assert len(found) == 9
    assert len(set(found)) == len(packed) == 1


def test_another_tree_of_the_same_names_sizes_and_times_is_another_archive(
    made, tmp_path, monkeypatch
):
    monkeypatch.setattr(trees, "SETTLED", 0)
    one, two = tree(tmp_path / "one", {"a": b"1"}), tree(tmp_path / "two", {"a": b"2"})
    settled(one)
    settled(two)
    assert [contents(pack(made, each)) for each in (one, two)] == [
        {"model/a": b"1"},
        {"model/a": b"2"},
    ]


def test_a_file_that_changes_within_a_tick_of_the_clock_is_packed_again(made, tmp_path):
    path = tree(tmp_path / "in", {"a": b"1"})
    one = pack(made, path)
    tree(path, {"a": b"2"})
    assert contents(pack(made, path)) == {"model/a": b"2"}
    assert contents(one) == {"model/a": b"1"}


# Cleaning.


def age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def test_what_was_not_used_for_long_is_removed_and_temporary_files_too(made, tmp_path):
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
    made, tmp_path, monkeypatch
):
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


def test_a_removed_file_is_made_again(made, tmp_path):
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


@pytest.fixture
def makes(made, tmp_path):
    """What makes a file, and what packs one."""
    path = tree(tmp_path / "in", {"a": b"x" * 5000})
    return [lambda: made.write("a.sh", b"x" * 2000), lambda: pack(made, path)]


def refused(make, tmp_path):
    with pytest.raises(StagingError) as caught:
        make()
    assert caught.value.path == str(tmp_path / "state" / "made")
    assert f"state/made': {os.strerror(caught.value.errno)}" in str(caught.value)
    return caught.value


def test_a_file_that_cannot_be_written_leaves_nothing_and_says_so(makes, tmp_path):
    for make in makes:
        with files_up_to(1000):
            error = refused(make, tmp_path)
        assert error.errno == errno.EFBIG
        assert str(error).startswith("the files that boinc_gahp makes for ")
    assert list((tmp_path / "state" / "made").iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_is_told_with_the_directory_and_the_remedy(
    makes, tmp_path, monkeypatch, number
):
    """No disk is full here: the system's call says so."""

    def full(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(generated_files, "whole_file", full)
    for make in makes:
        error = refused(make, tmp_path)
        assert error.errno == number
        assert ("free some space there" in str(error)) == (number != errno.EIO)
