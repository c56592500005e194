"""A daemon process over :class:`StandIn`: ``python -m tests.daemon.serve_stand_in [LIMIT=N]``.

A job named ``temporary PATH`` is fetched into a temporary file beside PATH, and never done. A batch
named ``executor`` is retired by a thread of an executor, and never done.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.daemon.main import serve

if TYPE_CHECKING:
    from boinc_gahp.bridge import Bridge
    from boinc_gahp.bridge.types import FetchRequest, FetchResult
    from boinc_gahp.config import ProjectSettings, Settings


def settings() -> Settings:
    from tests.daemon.stand_in import limited

    limits = {}
    for argument in sys.argv[1:]:
        name, value = argument.split("=")
        limits[name] = int(value)
    return limited(**limits)


def make_bridge(settings: Settings, project: ProjectSettings) -> Bridge:
    from concurrent.futures import ThreadPoolExecutor

    from boinc_gahp.bridge.temporary import registry
    from tests.daemon.stand_in import StandIn

    class Bridge(StandIn):
        def retire_batch(self, name: str) -> None:
            if name == "executor":
                ThreadPoolExecutor().submit(self.go.wait, 60).result()
            super().retire_batch(name)

        def fetch_output(self, request: FetchRequest) -> FetchResult:
            if request.job_name.startswith("temporary "):
                kept = registry.file(Path(request.job_name.removeprefix("temporary ")))
                self.go.wait(60)
                del kept
            return super().fetch_output(request)

    return Bridge().open(settings, project)


if __name__ == "__main__":
    serve(settings, make_bridge=make_bridge)
