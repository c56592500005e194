"""Uploads: streamed, checked while they are sent, and broken off when a file is not what it was."""

import hashlib
import re
import socket
import threading
import time

import pytest

from boinc_gahp.errors import StagingError, TransportError
from boinc_gahp.rpc._build import FormBody
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.types import UploadFile
from tests.helpers import most_memory
from tests.rpc.canned import inside
from tests.rpc.scripted import AUTHENTICATOR, ok

SUCCESS = ok(inside("upload_files", "<success>1</success>"))


@pytest.fixture
def project(server):
    server.answers.append(SUCCESS)
    with server.client(retry_total=20) as found:
        yield found


def described(path, data, name=""):
    path.write_bytes(data)
    digest = hashlib.md5(data).hexdigest()
    return UploadFile(name or f"{digest}.dat", str(path), len(data), digest)


def changed(path, contents):
    """Write other contents into a file; None: remove it."""
    path.unlink()
    if contents is not None:
        path.write_bytes(contents)


def test_files_arrive_as_they_are_in_the_order_of_their_names(server, project, tmp_path):
    contents = [b"", b"\r\n--x\r\n", bytes(range(256)) * 5000, b"last"]
    files = [described(tmp_path / str(n), data) for n, data in enumerate(contents)]
    server.answers.appendleft(ok(inside("ping", "<success>1</success>")))
    project.upload_files(files, batch_id=4, delete_time=1795361750.9)
    request = server.requests[-1]  # before it, the project was asked for its time
    boundary = request.headers["content-type"].partition("boundary=")[2].encode()
    parts = request.body.split(b"--" + boundary)[2:-1]
    assert [part.partition(b"\r\n\r\n")[2][:-2] for part in parts] == contents
    assert [re.findall(rb'name="(.*?)"; filename="(.*?)"', part) for part in parts] == [
        [(f"file_{n}".encode(), file.physical_name.encode())] for n, file in enumerate(files)
    ]
    names = "".join(f"<phys_name>{file.physical_name}</phys_name>" for file in files)
    assert request.xml.decode() == (
        f"<upload_files><authenticator>{AUTHENTICATOR}</authenticator><batch_id>4</batch_id>"
        f"<delete_time>1795361750</delete_time>{names}</upload_files>"
    )


@pytest.mark.parametrize(
    ("then", "now", "says"),
    [
        (b"ten bytes.", b"longer than before", "it is longer now"),
        (b"ten bytes.", b"short", "it ended 5 bytes early"),
        (b"ten bytes.", b"ten bytes!", "its MD5 is different now"),
        (b"ten bytes.", None, "No such file or directory"),
        (b"", b"x", "it is longer now"),
        (b"", None, "No such file or directory"),
    ],
    ids=["longer", "shorter", "other contents", "gone", "no longer empty", "empty and gone"],
)
def test_file_that_is_not_what_it_was_breaks_the_request_off(
    server, project, tmp_path, then, now, *, says
):
    good = described(tmp_path / "good", b"good")
    file = described(tmp_path / "in.dat", then)
    changed(tmp_path / "in.dat", now)
    with pytest.raises(StagingError) as caught:
        project.upload_files([good, file])
    assert says in str(caught.value)
    assert "in.dat'" in str(caught.value)
    # The request ended before its end, if the server saw it at all.
    assert all(b"ten bytes!" not in request.body for request in server.requests)


def test_a_directory_cannot_be_sent(project, tmp_path):
    with pytest.raises(StagingError, match="Is a directory"):
        project.upload_files([UploadFile("x.dat", str(tmp_path), 5, "0" * 32)])


def test_an_upload_that_the_server_does_not_take_ends_by_its_deadline(tmp_path):
    file = tmp_path / "large"
    with file.open("wb") as large:
        large.truncate(50_000_000)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with (
            WebRpcs(url, AUTHENTICATOR) as project,
            pytest.raises(TransportError, match=r"in time|time limit"),
        ):
            project.until(time.monotonic() + 0.7).upload_files(
                [UploadFile("x.dat", str(file), 50_000_000, "0" * 32)]
            )


def test_an_upload_may_take_longer_than_connecting(server, tmp_path):
    file = described(tmp_path / "in.dat", b"x" * 300_000)
    options = ClientOptions(connect_timeout=1.0)
    never = threading.Event()
    waits = iter([options.connect_timeout])

    def sent(_):
        never.wait(next(waits, 0.0))

    server.answers.append(SUCCESS)
    with WebRpcs(server.url, AUTHENTICATOR, options=options) as project:
        project.upload_files([file], sent=sent)
    assert [request.rpc for request in server.requests] == ["upload_files"]


def test_nothing_to_send_is_no_error(server, project):
    project.upload_files([])
    assert server.requests[0].rpc == "upload_files"


def test_size_is_known_beforehand_and_memory_is_not_used_up(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    digest = hashlib.md5(bytes(50_000_000)).hexdigest()

    def read():
        form = FormBody(b"<x/>", [UploadFile("x.dat", str(path), 50_000_000, digest)])
        assert sum(map(len, form)) == form.len
        form.close()

    assert most_memory(read) < 5_000_000
