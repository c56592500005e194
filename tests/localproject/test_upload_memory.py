"""Large uploads go to disk on their way in, whatever their size."""

import subprocess
import sys
from pathlib import Path

import pytest
import requests

from boinc_gahp.config import layers

pytestmark = pytest.mark.processes

_MEGABYTES = 64
_RUN = (
    "import sys; from boinc_gahp.localproject.commands import run;"
    "run(['run', sys.argv[1], '--hosts', '0'], None)"
)
_BLOCK = bytes(range(256)) * 4096


def _body(boundary, request):
    part = f'--{boundary}\r\nContent-Disposition: form-data; name="'
    yield f'{part}request"\r\n\r\n{request}\r\n{part}file_0"; filename="big"\r\n\r\n'.encode()
    for _ in range(_MEGABYTES):
        yield _BLOCK
    yield f"\r\n--{boundary}--\r\n".encode()


def _peak_kilobytes(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def test_a_large_upload_takes_no_memory(tmp_path):
    project = tmp_path / "p"
    process = subprocess.Popen(
        [sys.executable, "-c", _RUN, str(project)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        settings = layers.load(str(project / "boinc_gahp.toml"), {}).project
        assert settings is not None
        assert settings.authenticator is not None
        before = _peak_kilobytes(process.pid)
        request = (
            f"<upload_files><authenticator>{settings.authenticator.reveal()}</authenticator>"
            "<phys_name>big.dat</phys_name></upload_files>"
        )
        reply = requests.post(
            f"{settings.url}job_file.php",
            data=_body("b", request),
            headers={"Content-Type": "multipart/form-data; boundary=b"},
            timeout=100,
        )
        assert "<success/>" in reply.text
        assert _peak_kilobytes(process.pid) - before < 40_000
    finally:
        process.terminate()
        process.communicate(timeout=60)
    (stored,) = (project / "download").glob("*/big.dat")
    assert stored.stat().st_size == _MEGABYTES << 20
