"""Directories opened part by part, as the kernel would go there; whole files or none."""

import errno
import os
import shutil
import stat
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.files import make_private_directory, open_directory, whole_file, write_whole
from tests.helpers import at_once

PARTS = ["a", "b", "c", "..", "."]
WAYS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("/".join)
#: What there is in a tree: directories, and links with what they lead to; an absolute one begins
#: at the tree's top.
LINKS = st.dictionaries(WAYS, st.tuples(st.booleans(), WAYS), max_size=6)


@given(directories=st.lists(WAYS, max_size=6), links=LINKS, way=WAYS, has_file=st.booleans())
def test_a_path_leads_where_it_leads_the_kernel(
    directories, links, way, has_file, tmp_path_factory
):
    root = tmp_path_factory.mktemp("tree") / "x" / "x" / "x" / "x" / "x"
    root.mkdir(parents=True)
    try:
        for directory in directories:
            (root / directory).mkdir(parents=True, exist_ok=True)
        if has_file and not (root / "c").exists():
            (root / "c").touch()
        for name, (absolute, target) in links.items():
            try:
                (root / name).symlink_to(f"{root}/{target}" if absolute else target)
            except OSError:
                continue
        assert led(lambda: open_directory(root / way)) == led(
            lambda: os.open(f"{root}/{way}", os.O_RDONLY | os.O_DIRECTORY)
        )
    finally:
        shutil.rmtree(root.parents[4])


def led(way):
    """Return which directory a descriptor is of, or the system's name for why there is none."""
    try:
        descriptor = way()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    try:
        status = os.fstat(descriptor)
        return status.st_dev, status.st_ino
    finally:
        os.close(descriptor)


def test_what_a_link_to_nowhere_leads_to_is_not_made(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "not mounted")
    with pytest.raises(FileNotFoundError):
        make_private_directory(tmp_path / "link" / "state")
    assert not (tmp_path / "not mounted").exists()


def test_what_is_made_is_the_users_alone(tmp_path):
    before = os.umask(0)
    try:
        make_private_directory(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in sorted(tmp_path.rglob("*"))] == [0o700, 0o700]


def test_what_is_there_is_replaced_and_is_as_private_as_it_shall_be(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    write_whole(path, "new: é", 0o600)
    assert path.read_text("utf-8") == "new: é"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_leaves_what_was_there_and_nothing_else(tmp_path, monkeypatch):
    """No disk is full here: the system says so."""
    path = tmp_path / "file"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208


def test_writers_at_once_do_not_disturb_each_other(tmp_path):
    path = tmp_path / "file"
    texts = [str(number) * 100_000 for number in range(8)]

    def write(text):
        for _ in range(10):
            write_whole(path, text)
            assert path.read_text() in texts

    at_once(write, texts)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("durable", [False, True])
def test_a_name_that_is_taken_is_kept_where_it_is_not_to_be_replaced(
    tmp_path, monkeypatch, durable
):
    path = tmp_path / "file"
    synced = []
    monkeypatch.setattr(os, "fsync", lambda at: synced.append(stat.S_ISDIR(os.fstat(at).st_mode)))
    for text in (b"first", b"second"):
        with (
            suppress(FileExistsError),
            whole_file(path, 0o600, replace=False, durable=durable) as file,
        ):
            file.write(text)
    assert path.read_bytes() == b"first"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
    # The first file, its directory, and the second file.
    assert synced == ([False, True, False] if durable else [])


def test_without_links_a_file_gets_its_name_all_the_same(tmp_path, monkeypatch):
    """No file system here is without links: the system says so."""

    def refused(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr("pathlib.Path.hardlink_to", refused)
    with whole_file(tmp_path / "file", replace=False) as file:
        file.write(b"text")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"text"]


def test_whoever_fails_in_the_middle_leaves_nothing(tmp_path):
    def write():
        with whole_file(tmp_path / "file") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert list(tmp_path.iterdir()) == []
