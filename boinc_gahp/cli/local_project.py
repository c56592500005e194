"""``boinc_gahp local-project``: the local project's own commands; ``run`` also serves the page."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from boinc_gahp.localproject import commands
from boinc_gahp.localproject.commands import run_parser

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boinc_gahp.localproject.project import LocalProject
    from boinc_gahp.page.board import Source

__all__ = ["run", "run_parser"]


def run(arguments: list[str], config: str | None) -> int:
    """Run the action named by the first argument; return the exit status."""
    return commands.run(arguments, config, local_page)


@contextmanager
def local_page(project: LocalProject) -> Iterator[str]:
    """Serve the page of a local project, with the tabs that only it has; give its address."""
    from boinc_gahp.localproject import contents
    from boinc_gahp.page.views import More, PageServer

    core = project.core
    more = More(
        title="Local project",
        column="User",
        notices=partial(contents.notices, core),
        tabs=contents.tabs(core),
        instances=partial(contents.instances, core),
    )
    known: dict[Path, Source] = {}
    with PageServer(partial(_sources, project, known), more=more) as page:
        yield page.address


def _sources(project: LocalProject, known: dict[Path, Source]) -> list[Source]:
    """Return the users that have settings files; users may be added while the project runs."""
    from boinc_gahp.localproject.accounts import SUBMITTER, SUBMITTER_FILE, USERS
    from boinc_gahp.page.board import Source

    directory = project.directory.absolute()
    for path in (directory / SUBMITTER_FILE, *sorted((directory / USERS).glob("*.toml"))):
        if path not in known:
            label = SUBMITTER if path.name == SUBMITTER_FILE else path.stem
            known[path] = Source(label, None, str(path))
    return list(known.values())
