"""Input files by RPC: staged, raced, gone, inline, local, and the limits of PHP."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tests.inside import staged_files
from tests.localproject.client import Client, error, value, with_file


def test_a_race_of_uploads_leaves_one_whole_file(client):
    data = b"raced" * 100_000
    start = threading.Barrier(4)

    def upload(_):
        with Client(client.project) as one:
            start.wait(60)
            # All but one may end with a PHP error.
            with suppress(AssertionError):
                one.upload(data)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(upload, range(4)))
    (name,) = staged_files(client.project)
    assert client.project.core.download.path(name).read_bytes() == data
    assert not list((client.project.directory / "spool").iterdir())


@pytest.mark.parametrize("source", ["/etc/passwd", "../project.sqlite", "link"])
def test_the_mode_local_reads_one_directory_only(client, source):
    local = client.project.directory / "local"
    (local / "link").unlink(missing_ok=True)
    (local / "link").symlink_to("/etc/passwd")
    batch_id = client.create_batch("b")
    reply = client.submit(batch_id, [with_file("j", "local", source)])
    assert error(reply) == f"Can't get MD5 of file {source}"


@pytest.mark.parametrize("url", ["http://192.0.2.1/x", "file:///etc/passwd", "ftp://127.0.0.1/x"])
def test_the_mode_semilocal_fetches_from_this_machine_only(client, url):
    batch_id = client.create_batch("b")
    reply = client.submit(batch_id, [with_file("j", "semilocal", url)])
    assert error(reply) == f"couldn't get {url}: only http://127.0.0.1 is allowed here"


def test_an_inline_file_without_contents(client):
    """The real server fails on it, but has made the file, so that the next one goes through."""
    batch_id = client.create_batch("b")
    reply = client.submit(batch_id, [with_file("j0", "inline", "")])
    assert error(reply).startswith("can't write to file")
    reply = client.submit(batch_id, [with_file("j1", "inline", "")])
    assert value(reply, "batch_id") == str(batch_id)
