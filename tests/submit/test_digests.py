"""MD5s of files, remembered between runs."""

import hashlib
import os
import sqlite3
import sys
from contextlib import closing

import pytest

from boinc_gahp.errors import StagingError
from boinc_gahp.submit.digests import Digest, Digests, md5_of
from tests.helpers import ran, wait_for

LONG_AGO = 1_700_000_000


def write(path, contents, mtime=LONG_AGO):
    path.write_bytes(contents)
    os.utime(path, (mtime, mtime))
    return str(path)


def test_size_and_md5_of_each_file_are_those_of_its_contents(tmp_path):
    contents = [b"", b"one", os.urandom(3_000_000)]
    paths = [write(tmp_path / f"f{i}", data) for i, data in enumerate(contents)]
    files = Digests(tmp_path / "cache").of(paths)
    for path, data in zip(paths, contents, strict=True):
        assert files[path].md5 == hashlib.md5(data).hexdigest()
        assert files[path].nbytes == len(data)


def test_files_keep_their_order_whichever_are_remembered(tmp_path):
    paths = [write(tmp_path / name, name.encode() * 100) for name in "abcdef"]
    digests = Digests(tmp_path / "cache")
    digests.of(paths[3:])
    assert list(digests.of(paths)) == list(digests.of(paths)) == paths


@pytest.mark.processes
def test_a_remembered_file_is_not_read_again_also_by_another_process(tmp_path):
    path = write(tmp_path / "f", b"contents")
    Digests(tmp_path / "cache").of([path])
    # What only a program that does not read the file can believe.
    wanted = Digest("0" * 32, path, 8, "0" * 32)
    with closing(sqlite3.connect(tmp_path / "cache" / "digests.sqlite")) as cache, cache:
        cache.execute("update file set md5 = ?", (wanted.md5,))
    assert Digests(tmp_path / "cache").of([path])[path] == wanted
    program = (
        "import sys; from pathlib import Path; from boinc_gahp.submit.digests import Digests; "
        "print(Digests(Path(sys.argv[1])).of([sys.argv[2]])[sys.argv[2]].md5)"
    )
    other = ran(sys.executable, "-c", program, tmp_path / "cache", path)
    assert other.stdout.strip() == wanted.md5


@pytest.mark.parametrize("change", ["size", "mtime", "inode", "ctime"])
def test_a_file_that_looks_different_is_read_again(tmp_path, change):
    path = tmp_path / "f"
    write(path, b"contents")
    digests = Digests(tmp_path / "cache")
    digests.of([str(path)])
    if change == "size":
        write(path, b"longer contents")
    elif change == "mtime":
        write(path, b"CONTENTS", LONG_AGO + 1)
    elif change == "ctime":
        # As with cp -p of another file out of the same archive.
        before = path.stat().st_ctime_ns
        wait_for(
            lambda: write(path, b"CONTENTS") and path.stat().st_ctime_ns > before,
            "the file system's clock has ticked",
        )
    else:
        write(tmp_path / "g", b"CONTENTS")
        (tmp_path / "g").replace(path)
    assert digests.of([str(path)])[str(path)].md5 == hashlib.md5(path.read_bytes()).hexdigest()


def test_a_file_that_has_only_just_changed_is_not_remembered(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"contents")
    digests = Digests(tmp_path / "cache")
    digests.of([str(path)])
    times = path.stat()
    path.write_bytes(b"CONTENTS")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert digests.of([str(path)])[str(path)].md5 == hashlib.md5(b"CONTENTS").hexdigest()


@pytest.mark.parametrize("trouble", ["none", "damaged", "no directory", "not writable"])
def test_without_a_usable_cache_files_are_read_all_the_same(tmp_path, trouble):
    path = write(tmp_path / "f", b"contents")
    cache = tmp_path / "cache"
    if trouble == "damaged":
        cache.mkdir()
        (cache / "digests.sqlite").write_bytes(b"not a database" * 1000)
    elif trouble == "no directory":
        cache.write_text("a file")
    elif trouble == "not writable":
        (cache / "digests.sqlite").mkdir(parents=True)
    files = Digests(None if trouble == "none" else cache).of([path])
    assert files[path].md5 == hashlib.md5(b"contents").hexdigest()


FORKER = """
import os, signal, sys, threading
from pathlib import Path
from boinc_gahp.submit.cache_file import CacheFile

cache = CacheFile(Path(sys.argv[1]), "create table if not exists seen (who text);")
begun, end = threading.Event(), threading.Event()

def note(database):
    database.execute("insert into seen values ('parent')")
    begun.set()
    end.wait()

thread = threading.Thread(target=cache.use, args=(note, None))
thread.start()
begun.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    os._exit(cache.use(lambda database: 0, 1))
status = os.waitpid(child, 0)[1]
end.set()
thread.join()
print(status, cache.use(lambda database: database.execute("select who from seen").fetchall(), 0))
"""


@pytest.mark.processes
def test_a_child_uses_a_cache_that_its_parent_is_using(tmp_path):
    done = ran(sys.executable, "-c", FORKER, tmp_path / "cache" / "x.sqlite")
    assert done.stdout == "0 [('parent',)]\n"


def test_an_absent_file_a_directory_and_a_pipe_are_refused_by_name(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    for name, word in (
        ("absent", "No such file"),
        ("directory", "is a directory"),
        ("pipe", "not a regular file"),
    ):
        with pytest.raises(StagingError, match=word) as caught:
            Digests(None).of([str(tmp_path / name)])
        assert name in str(caught.value)


def test_a_name_with_a_nul_byte_is_refused_and_one_with_latin_1_bytes_is_read(tmp_path):
    with pytest.raises(StagingError):
        Digests(None).of(["/tmp/a\0b"])
    path = os.fsencode(tmp_path) + b"/caf\xe9"
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(b"x")
    name = os.fsdecode(path)
    assert Digests(tmp_path / "cache").of([name])[name].nbytes == 1


def test_a_file_that_grows_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"x" * 3_000_000)
    grown = []

    def grow(_):
        if not grown:
            with path.open("ab") as file:
                grown.append(file.write(b"more"))

    with pytest.raises(StagingError, match="changed while it was read") as caught:
        md5_of(str(path), grow)
    assert caught.value.passes
