"""The pages: who may see them, their addresses, and what each shows.

Only this machine reaches the server. A page of another site in the same browser can send requests
here, and, if that site's owner lets its name point to 127.0.0.1, even read the answers; and other
users of this machine can. So the Host header must name this machine, and each address begins with a
random token, which only those know who were given the page's address. It is in no cookie, because
browsers send these to all servers of a machine, and in no Referer.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from boinc_gahp.api.outputs.logs import page_of
from boinc_gahp.api.progress import longest_words
from boinc_gahp.errors import NotKnownHere
from boinc_gahp.extras import need_extra
from boinc_gahp.page._words import FILTERS, KINDS, counts, of_all
from boinc_gahp.page.board import FIRST
from boinc_gahp.states import BatchState
from boinc_gahp.terminal.output import command_line
from boinc_gahp.terminal.parsing import common_words

need_extra("page", "the page", "flask", "waitress")
from flask import Flask, Response, abort, render_template, request, send_file  # noqa: E402
from jinja2 import StrictUndefined  # noqa: E402

from boinc_gahp.serving import HOST, WebServer, hostname  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from typing_extensions import Self
    from werkzeug.wrappers import Response as AnyResponse

    from boinc_gahp.api.batch import Batch, BatchJob
    from boinc_gahp.page.board import Kept, Source

    #: What is shown as a card: ``title``, ``state``, ``tags``, ``facts``, ``lines``, ``texts``.
    Card = Mapping[str, Any]

_BATCHES_A_PAGE = 50
_JOBS_A_PAGE = 100
#: Bytes of an output that are shown.
_SHOWN = 1 << 16
_NAMES = (HOST, "localhost")
_TO_BROWSERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_ERRORS = {
    404: (
        "There is nothing here",
        "There is no such batch, job or file. Retired batches, whose outputs may be deleted, are "
        "not shown.",
    ),
    503: ("It is not known yet", "The project has not answered yet. Load the page again."),
}


@dataclass(frozen=True)
class More:
    """What a project on this machine can tell beside what every project does.

    Attributes:
        title: what it is called.
        notices: returns what everybody should know now.
        tabs: the cards of each further tab, by its title.
        instances: returns a card for each instance of a job, by the instances' ids.
        column: what the sources of batches are.
    """

    title: str = "boinc_gahp"
    column: str = "Project"
    notices: Callable[[], Sequence[str]] = list
    tabs: Mapping[str, Callable[[], Sequence[Card]]] = field(default_factory=dict)
    instances: Callable[[int], Mapping[int, Card]] = lambda _job_id: {}


class PageServer:
    """The page, served on a port of this machine; used as a context manager.

    Args:
        sources: returns the projects; always the same objects, perhaps more each time.
        port: the port to listen on; 0: any that is free.
        more: what a project on this machine adds.

    Attributes:
        address: opens the page; it has the token.

    Raises:
        OSError: the port is not free.
        MissingExtra: flask or waitress is not installed.
    """

    def __init__(
        self, sources: Callable[[], Sequence[Source]], port: int = 0, more: More | None = None
    ) -> None:
        token = secrets.token_urlsafe(24)
        self._sources = sources
        app = make_app(sources, token, more or More())
        self._server = WebServer(app, port)
        self.address = f"http://{HOST}:{self._server.port}/{token}/"

    def __enter__(self) -> Self:
        """Start to serve."""
        self._server.start()
        return self

    def __exit__(self, *_exc_info: object) -> None:
        """Stop, and close the connections to the projects."""
        self._server.stop()
        for source in self._sources():
            source.close()


def make_app(sources: Callable[[], Sequence[Source]], token: str, more: More) -> Flask:
    """Return the page as a WSGI application."""
    app = Flask(__package__ or "", static_url_path=f"/{token}/static")
    app.jinja_env.undefined = StrictUndefined
    app.jinja_env.filters.update(FILTERS)
    app.jinja_env.globals.update(kinds=KINDS, more=more, typed=_typed, page_of=page_of)
    pages = _Pages(sources, more)
    job = "/<int:place>/<int:batch_id>/<int:job_id>"
    for rule, view in (
        ("/", pages.batches),
        ("/more/<tab>", pages.tab),
        ("/<int:place>/<int:batch_id>", pages.batch),
        (job, pages.job),
        (f"{job}/outputs", pages.outputs),
        (f"{job}/outputs/<int:number>", pages.output),
    ):
        app.add_url_rule(f"/{token}{rule}", view.__name__, view, methods=["GET"])

    def check() -> Response | None:
        if hostname(request.host) not in _NAMES:
            text = f"This page is at {HOST} and localhost only. A page of another site asked."
            return Response(f"{text}\n", 421, mimetype="text/plain")
        given = request.path.partition("/")[2].partition("/")[0]
        if not secrets.compare_digest(given.encode(), token.encode()):
            text = "Open the page by its whole address, which was printed when it was started."
            return Response(f"{text}\n", 403, mimetype="text/plain")
        return None

    app.before_request(check)
    app.after_request(_finished)
    for status, words in _ERRORS.items():
        app.register_error_handler(status, partial(_failed, status, words))
    return app


def _finished(response: Response) -> Response:
    response.headers.update(_TO_BROWSERS)
    if request.headers.get("X-Live") == "1" and response.status_code == 200:
        # The script asks again every few seconds; mostly nothing has changed.
        response.set_etag(hashlib.sha256(response.get_data()).hexdigest()[:32])
        response.make_conditional(request)
    return response


def _failed(status: int, words: tuple[str, str], _error: object) -> tuple[str, int]:
    return _show("message.html", title=words[0], words=words[1]), status


def _show(template: str, **context: object) -> str:
    """Return a page; in its frame, or alone if the script asks for the part that changes."""
    live = request.headers.get("X-Live") == "1"
    return render_template(template, frame="live.html" if live else "frame.html", **context)


def _typed(source: Source, *words: object) -> str:
    """Return what to type on a terminal for a project."""
    more = common_words(source.name, source.config)
    line = command_line(["boinc_gahp", *map(str, words), *more])
    return line.replace(f" {Path.home()}/", " ~/")


class Section(NamedTuple):
    """A page of a list.

    Attributes:
        rows: what it shows.
        number: how many rows the whole list has.
        page: its number, from 1.
        size: how many rows a page has.
    """

    rows: list[Any]
    number: int
    page: int
    size: int


def _section(rows: Sequence[Any], size: int) -> Section:
    """Return the requested page of a list, or the last one."""
    last = max(1, math.ceil(len(rows) / size))
    page = min(max(request.args.get("page", 1, int), 1), last)
    return Section(list(rows[(page - 1) * size : page * size]), len(rows), page, size)


class _Pages:
    """What each page shows."""

    def __init__(self, sources: Callable[[], Sequence[Source]], more: More) -> None:
        self._sources = sources
        self._more = more

    def batches(self) -> str:
        """Show the batches of all projects, the newest first."""
        sources = self._sources()
        for source in sources:
            source.listed.ask()
        until = time.monotonic() + FIRST
        for source in sources:
            source.listed.wait(until)
        rows = [
            (place, source, batch)
            for place, source in enumerate(sources)
            for batch in list(source.batches.values())
        ]
        rows.sort(key=lambda row: (row[2].create_time, row[2].id), reverse=True)
        totals: Counter[str] = Counter()
        for _, _, batch in rows:
            totals.update(counts(batch))
        return _show(
            "batches.html",
            sources=sources,
            batches=_section(rows, _BATCHES_A_PAGE),
            totals=of_all({kind: totals[kind] for kind in KINDS}),
            notices=self._more.notices(),
        )

    def tab(self, tab: str) -> str:
        """Show a tab that only this project has."""
        if tab not in self._more.tabs:
            abort(404)
        cards = self._more.tabs[tab]()
        return _show("tab.html", tab=tab, cards=cards, notices=self._more.notices())

    def batch(self, place: int, batch_id: int) -> str:
        """Show a batch and a page of its jobs."""
        source, batch = self._found(place, batch_id)
        kept = source.jobs(batch)
        jobs = kept.wait() or []
        state, wanted = request.args.get("state", ""), request.args.get("q", "").strip()
        chosen = [
            job
            for job in jobs
            if (not state or job.state.name.lower() == state)
            and (wanted.lower() in job.name.lower() or wanted == str(job.id))
        ]
        reasons = source.reasons(batch, jobs) if any(job.errors for job in jobs) else None
        found = Counter(job.state.name.lower() for job in jobs)
        return _show(
            "batch.html",
            **_known(place, source, batch),
            counts=of_all({kind: found[kind] for kind in KINDS}) if jobs else counts(batch),
            jobs=_section(chosen, _JOBS_A_PAGE),
            kept=kept,
            sent=batch.manifest,
            reasons=None if reasons is None else reasons.wait(),
            attempts=source.attempts(batch),
            longest=longest_words(batch),
            state=state,
            wanted=wanted,
            actions=_actions(batch),
        )

    def job(self, place: int, batch_id: int, job_id: int) -> str:
        """Show a job, how it ended, and its instances."""
        source, job = self._job(place, batch_id, job_id)
        kept = source.end(job)
        try:
            sent = job.submitted
        except NotKnownHere:
            sent = None
        return _show(
            "job.html",
            **_known(place, source, job.batch),
            job=job,
            sent=sent,
            end=kept.wait(),
            kept=kept,
            details=self._more.instances(job.id),
        )

    def outputs(self, place: int, batch_id: int, job_id: int) -> str:
        """Show a job's outputs, as far as these are texts."""
        source, job = self._job(place, batch_id, job_id)
        kept = source.outputs(job)
        files = [
            (name, path.stat().st_size, _beginning(path))
            for name, path in (kept.wait() or {}).items()
            if path.exists()
        ]
        known = _known(place, source, job.batch)
        return _show("outputs.html", **known, job=job, kept=kept, files=files)

    def output(self, place: int, batch_id: int, job_id: int, number: int) -> AnyResponse:
        """Hand out an output, to be saved: it may hold anything."""
        source, job = self._job(place, batch_id, job_id)
        files = list((source.outputs(job).wait() or {}).items())
        if number >= len(files) or not files[number][1].exists():
            abort(404)
        name, path = files[number]
        called = f"{job.name}_{name}"
        return send_file(
            path.absolute(),
            mimetype="application/octet-stream",
            as_attachment=True,
            download_name="".join(
                char if char.isprintable() and char not in "/\\" else "_" for char in called
            ),
        )

    def _found(self, place: int, batch_id: int) -> tuple[Source, Batch]:
        sources = self._sources()
        if place >= len(sources):
            abort(404)
        source = sources[place]
        # One that was just made may not be known yet.
        source.listed.look(at_once=batch_id not in source.batches)
        batch = source.batches.get(batch_id)
        if batch is None:
            _not_there(source.listed)
        return source, batch

    def _job(self, place: int, batch_id: int, job_id: int) -> tuple[Source, BatchJob]:
        source, batch = self._found(place, batch_id)
        kept = source.jobs(batch)
        found = next((job for job in kept.wait() or () if job.id == job_id), None)
        if found is None:
            _not_there(kept)
        return source, found


def _not_there(kept: Kept[Any]) -> NoReturn:
    """End a request for something that is not there, or that is not known yet."""
    abort(503 if kept.value is None else 404)


def _known(place: int, source: Source, batch: Batch) -> dict[str, object]:
    return {"place": place, "source": source, "batch": batch, "project": batch.project}


def _actions(batch: Batch) -> list[str]:
    """Return the actions of ``batch`` that may be wanted next."""
    if not batch.is_over:
        return ["wait", "abort"]
    failed = ["logs", "retry"] if batch.nerror_jobs else []
    return ["fetch", *failed] if batch.state is BatchState.COMPLETE else failed


def _beginning(path: Path) -> str | None:
    """Return the beginning of a file that is a text; None: it is none."""
    with path.open("rb") as file:
        data = file.read(_SHOWN)
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        # A character may be cut off at the end.
        return data[: error.start].decode() if error.start > len(data) - 4 else None
