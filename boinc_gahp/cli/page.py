"""``boinc_gahp page``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from boinc_gahp.cli.batch.opening import PROJECTS
from boinc_gahp.config.accounts import find_projects
from boinc_gahp.config.layers import load
from boinc_gahp.terminal.parsing import Parser, whole_number
from boinc_gahp.terminal.stopping import until_stopped

if TYPE_CHECKING:
    from argparse import Namespace

_DESCRIPTION = """\
Shows your batches in a web browser: how far each is, its jobs, why jobs failed, and their outputs.
It prints the page's address; open that. All projects of the settings are in one list.

The page changes nothing. Only this machine reaches it, and only who has its address, which is a
new one each time. The projects are asked while the page is open in a browser.
"""


def run(options: Namespace) -> int:
    """Serve the page until it is interrupted."""
    from boinc_gahp.page.board import Source
    from boinc_gahp.page.views import PageServer

    sources = [
        Source(name or project.url.host, name or None, options.config)
        for name, project in find_projects(load(options.config), options.project).items()
    ]
    with until_stopped() as stop, PageServer(lambda: sources, options.port) as page:
        print(f"Open this in your browser: {page.address}", flush=True)
        print("Stop it with Ctrl-C.", flush=True)
        stop.wait()
    return 0


def run_parser() -> Parser:
    """Return the parser of ``page``."""
    parser = Parser(
        "page",
        _DESCRIPTION,
        examples=("boinc_gahp page", "boinc_gahp page --project lhc --project rosetta --port 8080"),
    )
    port = {"--port N": "port to listen on (default: any that is free)"}
    parser.takes(PROJECTS)
    parser.takes(port, type=partial(whole_number, 0, 65535), default=0)
    return parser.with_common()
