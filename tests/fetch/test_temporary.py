"""Temporary files: whole at their destination, or nowhere."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.destinations import explain
from boinc_gahp.fetch.temporary import Temporaries
from tests.helpers import files_up_to


@pytest.fixture
def registry():
    return Temporaries()


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_a_file_appears_under_its_name_only_when_it_is_committed(registry, tmp_path):
    with registry.file(tmp_path / "out") as file:
        file.write(b"some ")
        assert not (tmp_path / "out").exists()
        file.write(b"text")
        status = file.commit()
    assert (tmp_path / "out").read_bytes() == b"some text"
    assert status.st_size == 9
    assert (status.st_ino, status.st_mtime_ns) == (
        (tmp_path / "out").stat().st_ino,
        (tmp_path / "out").stat().st_mtime_ns,
    )
    assert names(tmp_path) == ["out"]


def test_an_error_leaves_the_old_file_and_nothing_else(registry, tmp_path):
    (tmp_path / "out").write_text("old")

    def fail():
        with registry.file(tmp_path / "out") as file:
            file.write(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (tmp_path / "out").read_text() == "old"
    assert names(tmp_path) == ["out"]


def test_the_users_umask_decides_who_can_read(registry, tmp_path):
    before = os.umask(0o027)
    try:
        with registry.file(tmp_path / "out") as file:
            file.commit()
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("target", ["target", "/nowhere/at/all"])
def test_a_link_is_replaced_and_its_target_left_alone(registry, tmp_path, target):
    (tmp_path / "target").write_text("kept")
    (tmp_path / "out").symlink_to(target)
    with registry.file(tmp_path / "out") as file:
        file.write(b"new")
        file.commit()
    assert (tmp_path / "target").read_text() == "kept"
    assert not (tmp_path / "out").is_symlink()


def test_a_name_of_255_bytes_will_do_and_256_will_not(registry, tmp_path):
    with registry.file(tmp_path / ("x" * 255)) as file:
        file.commit()
    with pytest.raises(OutputError, match="its name is too long"):
        registry.file(tmp_path / ("x" * 256))


def test_a_name_of_bytes_that_are_no_utf8_will_do(registry, tmp_path):
    destination = tmp_path / os.fsdecode(b"caf\xe9")
    with registry.file(destination) as file:
        file.commit()
    assert [os.fsencode(name) for name in names(tmp_path)] == [b"caf\xe9"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent/out", "absent' does not exist: create it"),
        ("file/out", "a part of its path is not a directory"),
        ("directory", "is a directory: name a file in it"),
        ("pipe", "is not a regular file"),
        ("a\0b", "null"),
    ],
)
def test_what_can_be_no_destination_is_told(registry, tmp_path, name, words):
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match=words):
        registry.file(tmp_path / name)


def test_a_file_system_that_takes_no_files_is_reported(registry):
    with pytest.raises(OutputError, match=r"permission denied|not permitted|is read-only"):
        registry.file(Path("/sys/out"))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full: free some space"),
        (errno.EDQUOT, "the disk quota is used up: free some space"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
    ids=["disk full", "quota", "anything else"],
)
def test_what_went_wrong_is_reported_with_the_files_name(number, words):
    error = explain(OSError(number, os.strerror(number)), Path("/home/me/out"))
    assert str(error) == f"'/home/me/out' cannot be written: {words}"


def test_two_fetches_of_one_destination_do_not_mix(registry, tmp_path):
    with registry.file(tmp_path / "out") as one, registry.file(tmp_path / "out") as two:
        assert one.path != two.path
        one.write(b"1" * 10)
        two.write(b"2" * 20)
        one.commit()
        assert (tmp_path / "out").read_bytes() == b"1" * 10
        two.commit()
    assert (tmp_path / "out").read_bytes() == b"2" * 20
    assert names(tmp_path) == ["out"]


def test_after_the_end_nothing_is_left_and_nothing_can_be_made(registry, tmp_path):
    file = registry.file(tmp_path / "out")
    file.write(b"half")
    registry.remove_all()
    assert names(tmp_path) == []
    file.write(b" and half")
    with pytest.raises(OutputError, match="is stopping"):
        file.commit()
    with pytest.raises(OutputError, match="is stopping"):
        registry.file(tmp_path / "out")
    file.discard()
    assert names(tmp_path) == []


def test_a_room_beside_a_file_goes_with_all_that_is_in_it(registry, tmp_path):
    with registry.file(tmp_path / "out") as file:
        with file.room() as room:
            assert room.parent == tmp_path
            (room / "member").mkdir(0o500)
            file.write(b"whole")
        file.commit()
    assert names(tmp_path) == ["out"]


WRITER = """
import sys
from pathlib import Path
from boinc_gahp.fetch.temporary import Temporaries
registry = Temporaries()
files = [registry.file(Path(sys.argv[1]) / "out") for _ in range(8)]
files.pop(2).discard()
room = files[0].room()
(room.__enter__() / "member").mkdir()
for file in files:
    file.write(b"half of it, and more than what comes next")
print("ready", flush=True)
sys.stdin.read()
"""


def kill_a_writer(directory):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGKILL)


@pytest.mark.processes
def test_what_a_killed_process_left_is_removed_when_its_directory_is_used(registry, tmp_path):
    with Temporaries().file(tmp_path / "in-use") as other:
        kill_a_writer(tmp_path)
        assert len(names(tmp_path)) == 9
        registry.file(tmp_path / "something else").discard()
        assert names(tmp_path) == [other.path.name]


def test_no_room_leaves_no_file_and_says_so(registry, tmp_path):
    larger = pytest.raises(OutputError, match="/out' cannot be written: it is larger")
    with larger, files_up_to(1000), registry.file(tmp_path / "out") as file:
        for _ in range(20):
            file.write(bytes(100))
        file.commit()
    assert names(tmp_path) == []
