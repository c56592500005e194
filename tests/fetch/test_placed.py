"""What is remembered of outputs in place."""

import stat

from boinc_gahp.fetch._placed import PlacedFiles
from tests.helpers import at_once


def test_it_knows_thousands_of_files_and_which_of_them_were_changed(tmp_path):
    placed = PlacedFiles(tmp_path / "cache")
    paths = [tmp_path / str(number) for number in range(1_200)]
    for path in paths:
        path.write_text("text")
    keys = {path: ("job", path.name) for path in paths}
    for path in paths[1:]:
        placed.remember([(keys[path], path.stat(), "1cb251ec0d568de6a929b520c4aed8d1")])
    paths[7].unlink()
    paths[8].write_text("tent")
    paths[9].unlink()
    paths[9].write_text("text")
    try:
        assert set(placed.still_there(keys)) == set(paths) - {paths[0], paths[7], paths[8]}
        assert placed.still_there({}) == {}
    finally:
        placed.close()


def test_files_that_many_threads_deliver_are_all_remembered(tmp_path):
    placed = PlacedFiles(tmp_path / "cache")
    paths = [tmp_path / str(number) for number in range(400)]
    for path in paths:
        path.touch()
    keys = {path: ("job", path.name) for path in paths}

    def put(some):
        for path in some:
            placed.remember([(keys[path], path.stat(), "")])
            placed.still_there({path: keys[path]})

    at_once(put, [paths[at::8] for at in range(8)])
    placed.close()
    again = PlacedFiles(tmp_path / "cache")
    try:
        assert set(again.still_there(keys)) == set(paths)
    finally:
        again.close()


def test_it_can_be_read_by_its_owner_alone(tmp_path):
    tmp_path.chmod(0o755)  # a directory that was there before, [state] cache_dir for example
    placed = PlacedFiles(tmp_path)
    placed.made(("a job's directory",), tmp_path.stat())
    try:
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        placed.close()
    assert set(modes) >= {"placed.sqlite", "placed.sqlite-wal"}
    assert set(modes.values()) == {0o600}
