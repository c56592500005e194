"""Whole stories of a local project, told with the installed command."""

import errno
import socket

import pytest
import requests

from boinc_gahp.localproject.directory import open_core
from tests.cli.conftest import rows, running

pytestmark = pytest.mark.long


def test_it_listens_where_it_is_told_to_and_all_settings_follow(do, directory):
    do.prints("add-user", "moves")
    paths = [directory / "boinc_gahp.toml", directory / "users" / "moves.toml"]
    secrets = [path.read_text().splitlines()[3] for path in paths]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with running(directory, "--hosts", "0", "--port", str(port), "--listen", "127.0.0.2"):
        for address, expected in (("127.0.0.2", 0), ("127.0.0.1", errno.ECONNREFUSED)):
            with socket.socket() as probe:
                assert probe.connect_ex((address, port)) == expected
    for path, secret in zip(paths, secrets, strict=True):
        assert f'url = "http://127.0.0.2:{port}/test/"' in path.read_text()
        assert path.read_text().splitlines()[3] == secret
        assert path.stat().st_mode & 0o077 == 0


def test_it_answers_under_the_names_that_it_is_given(directory):
    with running(directory, "--hosts", "0", "--name", "one.example", "--name", "two.example"):
        core = open_core(directory)
        url = core.url
        core.db.close()
        for name, status in (("one.example", 200), ("two.example", 200), ("evil.example", 421)):
            assert requests.get(url, headers={"Host": name}, timeout=60).status_code == status


def uploaded(directory, contents):
    """Stage a file on the running project as its submitter, and return the reply."""
    core = open_core(directory)
    url = core.url
    core.db.close()
    (user,) = rows(directory, "SELECT authenticator FROM user WHERE name = 'submitter'")
    request = (
        f"<upload_files><authenticator>{user['authenticator']}</authenticator>"
        "<phys_name>f</phys_name></upload_files>"
    )
    parts = {"request": (None, request), "file_0": ("f", contents)}
    return requests.post(url + "job_file.php", files=parts, timeout=60).text


@pytest.mark.parametrize(
    ("words", "said"),
    [([], "<success/>"), (["--stock-php"], "exceeds upload_max_filesize of php.ini")],
    ids=["recommended", "stock"],
)
def test_run_has_the_php_that_it_is_told(home, words, said):
    with running(home / "p", "--hosts", "0", *words):
        assert said in uploaded(home / "p", "x" * ((2 << 20) + 1))


def test_an_address_of_another_machine_is_one_line(do):
    errors = do.refuses("run", "--listen", "192.0.2.1")
    assert "cannot listen on 192.0.2.1, port" in errors
    assert "give an address of this machine" in errors
    assert errors.count("\n") == 1
