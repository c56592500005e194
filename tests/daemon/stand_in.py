"""A bridge without a project: what happens depends on the names that it is given."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

from boinc_gahp.bridge.types import BatchStatuses, FetchResult
from boinc_gahp.config import Limits, ProjectSettings, Settings
from boinc_gahp.errors import GahpError
from boinc_gahp.secret import Authenticator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boinc_gahp.bridge import Bridge, Client, FetchRequest, SubmitRequest

SETTINGS = Settings(
    project=ProjectSettings("http://127.0.0.1:9/test/", Authenticator("5ecre7-key"))
)


def limited(**limits: int) -> Settings:
    return Settings(project=SETTINGS.project, limits=Limits(**limits))


class StandIn:
    """``hang...`` waits until :attr:`go` is set; ``fail TEXT`` raises; ``bug`` is a bug."""

    def __init__(self, url: str = "http://127.0.0.1:9/test/", account: str = "") -> None:
        self.url = url
        self.account = account
        self.go = threading.Event()
        self.hanging = threading.Semaphore(0)
        self.calls: list[tuple[Any, ...]] = []
        self.settled = threading.Event()
        self.closed = False

    def open(self, _settings: Settings, project: ProjectSettings) -> Bridge:
        """Be the bridge to any project."""
        assert project.authenticator is not None
        self.calls.append(("open", project.url, project.authenticator.account))
        return cast("Bridge", self)

    def act(self, *call: Any, name: str = "") -> None:
        self.calls.append(call)
        if name.startswith("hang"):
            self.hanging.release()
            self.go.wait(60)
        elif name.startswith("fail "):
            raise GahpError(name.removeprefix("fail "))
        elif name == "bug":
            raise ZeroDivisionError("5ecre7-key")
        elif name == "exit":
            raise SystemExit(3)

    def ping(self) -> None:
        self.act("ping")

    def submit(self, request: SubmitRequest, client: Client) -> None:
        self.act("submit", request, client, name=request.batch_name)

    def query_batches(
        self, names: Sequence[str], min_mod_time: str | float, client: Client
    ) -> BatchStatuses:
        self.act("query", tuple(names), min_mod_time, client, name=names[0] if names else "")
        return BatchStatuses("1795261323.469543", tuple(((f"{n}#1.0", "DONE"),) for n in names))

    def fetch_output(self, request: FetchRequest) -> FetchResult:
        self.act("fetch", request, name=request.job_name)
        return FetchResult(3, 12.5, 11.75)

    def abort_jobs(self, names: Sequence[str]) -> None:
        self.act("abort", tuple(names), name=names[0])

    def retire_batch(self, name: str) -> None:
        self.act("retire", name, name=name)

    def set_lease(self, name: str, unix_time: float) -> None:
        self.act("lease", name, unix_time, name=name)

    def settle(self) -> None:
        self.settled.set()

    def close(self) -> None:
        self.closed = True
