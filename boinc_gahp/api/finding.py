"""Finds the app, the batch, or the job, that a name or an id stands for.

A project looks for a name among the batches of all accounts, retired ones included, and returns the
oldest match. For a project, names that differ in case, accents or trailing spaces are the same, and
it does not find names with quotes at all (``web-rpcs.rst``, "create_batch"). So names are looked up
in the account's own list, and all requests use ids.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from boinc_gahp.errors import (
    AppNotFound,
    BadRequest,
    GahpError,
    NoSuchBatch,
    NoSuchJob,
    NotFound,
    NotOwner,
    WrongBatch,
)
from boinc_gahp.submit.checks import fold
from boinc_gahp.text import did_you_mean, listed, nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boinc_gahp.api.known_batch import KnownBatch
    from boinc_gahp.api.session import Session
    from boinc_gahp.rpc.types import BatchInfo, JobInfo
    from boinc_gahp.templates.types import (
        InputFileInfo,
        InputTemplate,
        OutputFileInfo,
        OutputTemplate,
    )

#: How many batches, or jobs, an error lists by name.
_NAMED = 5
#: The largest id that the project's database can hold.
_MAX_ID = 2**31 - 1
#: So many jobs need fewer bytes than 20 batches in a list.
_FEW_JOBS = 100
_FORCED = re.compile(r"(id|name):(.*)", re.DOTALL)
_NUMBER = re.compile(r"\s*[0-9]{1,10}\s*", re.ASCII)


def of_account(session: Session) -> list[BatchInfo]:
    """Return the account's batches, newest first, retired ones left out; raises RpcError."""
    batches = session.rpc.query_batches()
    return sorted(batches, key=lambda batch: (batch.create_time, batch.id), reverse=True)


def by_id(session: Session, batch_id: int, njobs: int | None = None) -> BatchInfo:
    """Return what the project says about the batch with this id, retired or not.

    Args:
        session: the project.
        batch_id: the batch's id.
        njobs: how many jobs it has, if known: for a batch with few, the reply of query_batch is
            shorter than that of query_batches.

    Raises:
        NoSuchBatch: there is no such batch.
        WrongBatch: it belongs to another account.
        RpcError: the project could not be asked.
    """
    is_small = njobs is not None and njobs <= _FEW_JOBS
    own = [] if is_small else of_account(session)
    found = _with_id(session, own, batch_id)
    if found is None:
        _not_found(session, str(batch_id), of_account(session) if is_small else own)
    return found


def find_batch(session: Session, which: int | str) -> BatchInfo:
    """Return the batch that is meant; see :meth:`Project.batch`."""
    if isinstance(which, int):
        return by_id(session, which)
    forced = _FORCED.fullmatch(which)
    if forced is not None and forced[1] == "id":
        if not _NUMBER.fullmatch(forced[2]):
            raise NoSuchBatch(
                f"{which!r} names no batch: an id is a number; a batch with this name is "
                f"name:{which}",
                said=which,
            )
        return by_id(session, int(forced[2]))
    name = which if forced is None else forced[2]
    number = int(name) if forced is None and _NUMBER.fullmatch(name) else None
    own = of_account(session)
    called = _with_name(session, own, name)
    numbered = None
    if number is not None:
        try:
            numbered = _with_id(session, own, number)
        except WrongBatch:
            if called is None:
                raise
    if called is not None and numbered is not None and called.id != numbered.id:
        raise WrongBatch(
            f"{which!r} is the id of one batch of yours on {session.rpc.host}, "
            f"{_described(numbered)}, and the name of another, {_described(called)}: write "
            f"id:{numbered.id} or id:{called.id}",
            said=which,
        )
    found = called or numbered or _unlisted(session, name)
    if found is None:
        _not_found(session, which, own)
    return found


def _with_id(session: Session, own: Sequence[BatchInfo], batch_id: int) -> BatchInfo | None:
    """Return the account's batch with this id; one that is not listed may be retired."""
    for each in own:
        if each.id == batch_id:
            return each
    if not 0 < batch_id <= _MAX_ID:
        return None
    try:
        return session.rpc.batch(batch_id)
    except NotFound:
        return None
    except NotOwner as error:
        raise WrongBatch(
            f"batch {batch_id} of {session.rpc.host} belongs to another account: only that "
            "account can see or change it",
            said=str(batch_id),
        ) from error


def _with_name(session: Session, own: Sequence[BatchInfo], name: str) -> BatchInfo | None:
    """Return the listed batch of this name: the exact name first, then as the project compares."""
    found = [each for each in own if each.name == name]
    if not found:
        found = [each for each in own if fold(each.name) == fold(name)]
    if len(found) > 1:
        raise WrongBatch(
            f"{len(found)} batches of yours on {session.rpc.host} are called {name!r}: "
            f"{_several(found)}; choose one by its id, for example id:{found[0].id}",
            said=name,
        )
    return found[0] if found else None


def _unlisted(session: Session, name: str) -> BatchInfo | None:
    """Return the account's retired batch of this name, if the project's lookup returns it."""
    if not name.strip():
        return None
    try:
        found = session.rpc.query_batch(batch_name=name).batch
    except (NotFound, BadRequest):
        return None
    except NotOwner as error:
        raise WrongBatch(
            f"the batch called {name!r} on {session.rpc.host} belongs to another account, and you "
            "have none of this name; a retired batch of yours can be found only by its id",
            said=name,
        ) from error
    # Names that are the same for the project may differ for a person ("ss" and "\u00df").
    return found if fold(found.name) == fold(name) else None


def _not_found(session: Session, name_or_id: str, own: Sequence[BatchInfo]) -> NoReturn:
    """Raise the error for a name or id that was not found, with suggestions."""
    if not own:
        known = "you have no batches there that are not retired"
    else:
        known = f"your newest there: {_several(own)}"
    names = [each.name for each in own]
    projects = session.settings.projects.items()
    others = [name for name, each in projects if each != session.project_settings]
    other = f"; on another project it is {f'{name_or_id}@{others[0]}'!r}" if others else ""
    raise NoSuchBatch(
        f"you have no batch {name_or_id!r} on {session.rpc.host}"
        f"{did_you_mean(name_or_id, names, fold, repr)} ({known}){other}",
        said=name_or_id,
    )


def _described(found: BatchInfo) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(found.create_time))
    return f"{found.name!r} (id {found.id}, {found.state.words}, of {when})"


def _several(found: Sequence[BatchInfo]) -> str:
    return listed([_described(each) for each in found], _NAMED)


# -- jobs


def find_jobs(batch: KnownBatch, which: Iterable[int | str] | None) -> Iterable[JobInfo]:
    """Return jobs of a batch by their names or ids, in this order, each once; None: all jobs.

    All jobs are streamed as they are requested.

    Raises:
        NoSuchJob: the first word that stands for no job, or for two.
        RpcError: the project could not be asked.
    """
    every = batch.session.rpc.iter_jobs
    if which is None:
        return every(batch.id)
    wanted = {name_or_id: _words(name_or_id) for name_or_id in which}
    by_name = {name for name, _ in wanted.values()}
    by_number = {number for _, number in wanted.values()}
    named: dict[str | None, JobInfo] = {}
    numbered: dict[int | None, JobInfo] = {}
    names = []
    for each in every(batch.id) if wanted else ():
        names.append(each.name)
        if each.name in by_name:
            named[each.name] = each
        if each.id in by_number:
            numbered[each.id] = each
    found: dict[int, JobInfo] = {}
    for name_or_id, (name, number) in wanted.items():
        one, other = named.get(name), numbered.get(number)
        if one is not None and other is not None and one is not other:
            raise NoSuchJob(
                f"{name_or_id!r} is the name of one job of {batch.called}, and the id of another, "
                f"{other.name!r}: write name:{name_or_id} or id:{name_or_id}"
            )
        meant = one or other
        if meant is None:
            raise NoSuchJob(
                f"{batch.called} has no job {str(name_or_id)!r}{_meant(str(name_or_id), names)}"
            )
        found[meant.id] = meant
    return list(found.values())


def _meant(name_or_id: str, names: Sequence[str]) -> str:
    """Return suggestions for the name of a job that does not exist."""
    if not names:
        return ": it has none at all"
    return (
        did_you_mean(name_or_id, names, fold, repr)
        or f": its first is {names[0]!r}, its last {names[-1]!r}"
    )


def _words(which: int | str) -> tuple[str | None, int | None]:
    """Return the name and the id that a word for a job can mean."""
    if isinstance(which, int):
        return None, which
    forced = _FORCED.fullmatch(which)
    name = which if forced is None else forced[2]
    number = int(name) if _NUMBER.fullmatch(name) else None
    if forced is None:
        return name, number
    return (None, number) if forced[1] == "id" else (name, None)


@dataclass(frozen=True)
class App:
    """What a job of an app needs, and which outputs it makes (``templates.rst``).

    Attributes:
        name: the app's name.
        input_template: everything that the app's input template says; None for what it leaves out.
        output_template: the same for the output template.
    """

    name: str
    input_template: InputTemplate = field(repr=False)
    output_template: OutputTemplate = field(repr=False)

    @property
    def inputs(self) -> tuple[InputFileInfo, ...]:
        """The files that each job has to name, by ``open_name``, in the template's order."""
        return self.input_template.per_job_files

    @property
    def outputs(self) -> tuple[OutputFileInfo, ...]:
        """The files that a job makes; those with ``optional`` may be missing."""
        return self.output_template.files

    def __repr__(self) -> str:
        inputs = ", ".join(info.open_name for info in self.inputs) or "none"
        outputs = ", ".join(
            info.open_name + (" (optional)" if info.optional else "") for info in self.outputs
        )
        return f"<App {self.name!r} inputs: {inputs}; outputs: {outputs or 'none'}>"


def look_up(session: Session, name: str) -> App:
    """Return an app.

    Raises:
        AppNotFound: the project has no app of this name; suggests the most similar app of the
            account's batches, since a project does not list its apps.
        PermissionDenied: the account may not submit to it.
        TemplateError: its templates cannot be read.
        BadRequest: it is a BUDA app, whose inputs and outputs no project tells.
        RpcError: the project could not be asked.
    """
    from boinc_gahp.submit.checks import buda_name  # noqa: PLC0415  (not for lists of batches)
    from boinc_gahp.templates.reading import read_templates  # noqa: PLC0415

    if buda_name(name) is not None:
        raise BadRequest(
            f"a project does not tell the inputs and outputs of a BUDA app ({quoted(name)}): its "
            "admin knows them"
        )

    try:
        text = session.rpc.get_templates(app_name=name)
    except NotFound as error:
        raise unknown_app(session, name, error) from error
    return App(name, *read_templates(text))


def unknown_app(session: Session, name: str, error: NotFound) -> AppNotFound:
    """Return the error for an app that the project does not know."""
    try:
        used = sorted({batch.app_name for batch in session.rpc.query_batches()})
    except GahpError:
        used = []  # the first error is more useful
    meant = nearest(name, used)
    if meant:
        more = f"did you mean {meant}?"
    elif used:
        more = f"your batches use {', '.join(used)}"
    else:
        more = "ask the project's admin which apps it has, or look at its web site"
    return AppNotFound.of(error, f"{error}; {more}")
