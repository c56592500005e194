"""A real web server: nginx, over a directory, as an admin sets it up for published files."""

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import requests

from boinc_gahp.localproject.core import free_port
from tests.helpers import wait_for

INSTALL = "apt-get install --no-install-recommends nginx-light"

#: What ``docs/htcondor-admins.rst`` shows, with what nginx needs to run beside another one.
_SETTINGS = """\
daemon off;
pid {own}/pid;
events {{}}
http {{
    access_log {own}/access.log;
    client_body_temp_path {own}; proxy_temp_path {own}; fastcgi_temp_path {own};
    uwsgi_temp_path {own}; scgi_temp_path {own};
    server {{
        listen 127.0.0.1:{port};
        root {directory};
        autoindex off;
        default_type application/octet-stream;
    }}
}}
"""


@contextmanager
def nginx(directory, own):
    """Have nginx hand out a directory; yield the address. ``own`` is an empty directory for it."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program, f"nginx is needed: {INSTALL}"
    port, settings = free_port(), Path(own, "nginx.conf")
    settings.write_text(_SETTINGS.format(own=own, directory=directory, port=port))
    address = f"http://127.0.0.1:{port}/"
    with subprocess.Popen([program, "-e", f"{own}/error.log", "-c", settings]) as process:
        try:
            wait_for(lambda: _answers(address) or process.poll() is not None, "nginx answers")
            assert process.poll() is None, Path(own, "error.log").read_text()
            yield address
        finally:
            process.terminate()


def _answers(address):
    try:
        return requests.get(address, timeout=5).status_code
    except requests.ConnectionError:
        return None
