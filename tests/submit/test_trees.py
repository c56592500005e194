"""Input directories: whether they are still as they were."""

import os
import sys

import pytest

from boinc_gahp.errors import StagingError
from boinc_gahp.submit import trees
from boinc_gahp.submit.generated_files import Member
from boinc_gahp.submit.trees import look
from tests.helpers import ran
from tests.submit.input_directories import LONG_AGO, count_calls, tree


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
    made.pack([Member(str(path), "model", stamp)])
    CHANGES[change](path)
    assert look(str(path)).stamp != stamp
    with pytest.raises(StagingError, match=r"'.*/in' changed since the job was submitted"):
        made.pack([Member(str(path), "model", stamp)])


def test_a_restored_tree_has_the_same_stamp(tmp_path):
    files = {"a": b"1", "sub/b": b"2"}
    one, two = tree(tmp_path / "one", files), tree(tmp_path / "two", files)
    assert look(str(one)).stamp == look(str(two)).stamp


@pytest.mark.processes
def test_a_stamp_is_the_same_in_another_process(tmp_path):
    path = tree(tmp_path / "in", {"a": b"1", "ü\udcff\n": b"2"})
    program = "import sys; from boinc_gahp.submit.trees import look; print(look(sys.argv[1]).stamp)"
    other = ran(sys.executable, "-c", program, path)
    assert other.stdout.strip() == look(str(path)).stamp


def test_a_tree_that_many_jobs_share_is_not_looked_through_for_each(tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "_REST", 1e9)
    monkeypatch.setattr(trees, "_LONGEST_REST", 1e9)
    looked = count_calls(monkeypatch, trees, "walk")
    path = str(tree(tmp_path / "in", {"a": b"1"}))
    assert len({look(path).stamp for _ in range(1000)}) == 1
    assert looked == [path]
