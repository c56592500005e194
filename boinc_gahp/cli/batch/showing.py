"""``boinc_gahp batch show`` and ``list``."""

from __future__ import annotations

import math
import re
import shlex
import sys
import time
from argparse import Namespace
from collections import defaultdict
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from boinc_gahp.cli.batch import states
from boinc_gahp.cli.batch.jsons import batch_json, error_json, picked, print_json
from boinc_gahp.cli.batch.opening import (
    BATCH,
    JOBS,
    PATIENCE,
    PROJECTS,
    Choice,
    ask_all,
    command,
    opened_to_look,
)
from boinc_gahp.cli.main import FAILED
from boinc_gahp.config.accounts import find_projects
from boinc_gahp.config.layers import load
from boinc_gahp.errors import GahpError
from boinc_gahp.states import BatchState, JobState
from boinc_gahp.terminal import table, words
from boinc_gahp.terminal.output import bar, coloured, print_lines, width_of
from boinc_gahp.terminal.parsing import Parser, declare
from boinc_gahp.terminal.table import Column
from boinc_gahp.text import count, did_you_mean, printable, size, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from boinc_gahp.api.batch import Batch, BatchJob
    from boinc_gahp.api.manifest import SubmittedJob
    from boinc_gahp.config.settings import ProjectSettings
    from boinc_gahp.fetch.job_end import JobEnd
    from boinc_gahp.terminal.table import Cell


_DESCRIPTION = """\
Shows a batch and its jobs. A terminal shows the first 50 jobs, a pipe gets all. A retired batch is
found by its id as long as the project has it.

Arguments, parameters and inputs are shown on the machine that submitted the batch: a project does
not tell them. --json has them in full.
"""

_STATES = [state.value for state in JobState if state is not JobState.UNKNOWN]
#: Their names in JSON, which are taken, too.
_NAMES = {state.name.lower(): state.value for state in JobState}

#: Jobs shown on a terminal unless an option gives a number.
_SHOWN = 50
_BAR = 30


def _cpu_time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.1f} s" if seconds < 120 else span(seconds)


def _not_known(batch: Batch) -> str:
    """Return what to say about the jobs of a batch that has no manifest here."""
    if batch.state is BatchState.RETIRED:
        return "the batch is retired, so what was submitted is forgotten"
    return "what was submitted is known only on the machine that did it"


@lru_cache(64)
def _submitted(job: BatchJob) -> SubmittedJob | None:
    """Return what was submitted for a job; None: it is not known here."""
    manifest = job.batch.manifest
    return manifest.job(job.name) if manifest is not None and job.name in manifest.jobs else None


def _of_submitted(shown: Callable[[SubmittedJob], str]) -> Callable[[BatchJob], str]:
    """Return a function that shows what was submitted for a job, if that is known here."""

    def show(job: BatchJob) -> str:
        sent = _submitted(job)
        return "" if sent is None else shown(sent)

    return show


def _parameters(sent: SubmittedJob) -> str:
    """Return a job's parameters on one line: ``seed=1 n=100``."""
    texts = {name: "" if value is None else str(value) for name, value in sent.parameters.items()}
    return " ".join(
        f"{name}={text if text == shlex.quote(text) else repr(text)}"
        for name, text in texts.items()
    )


def _inputs(sent: SubmittedJob) -> str:
    """Return a job's inputs, as ``--input`` has them."""
    return " ".join(f"{name}={item.source}" for name, item in sent.files.items())


def _submitted_json(job: BatchJob) -> dict[str, Any]:
    """Return what was submitted for a job; nulls: it is not known here."""
    sent = _submitted(job)
    if sent is None:
        return {"args": None, "parameters": None, "inputs": None}
    return {
        "args": list(sent.words),
        "parameters": {
            # JSON has no other numbers.
            name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in sent.parameters.items()
        },
        "inputs": [
            {"name": name, **picked(item, "md5", "source")} for name, item in sent.files.items()
        ],
    }


#: The columns and their contents.
_COLUMNS: tuple[tuple[Column, Callable[[BatchJob], Cell]], ...] = (
    (Column("id", rank=3, right=True), lambda job: str(job.id)),
    (Column("job", minimum=24, middle=True), lambda job: job.name),
    (Column("state"), lambda job: states.job_words(job.state)),
    (Column("cpu time", rank=2, right=True), lambda job: _cpu_time(job.cpu_time)),
    (Column("parameters", rank=1, minimum=16), _of_submitted(_parameters)),
    (Column("arguments", rank=4, minimum=24), _of_submitted(lambda sent: shlex.join(sent.words))),
)


def _attempt_lines(options: Namespace, batch: Batch) -> Iterator[str]:
    """Yield which attempts have failed before any job is done, and what to type."""
    from boinc_gahp.api.outputs.logs import attempts_of

    if batch.state is not BatchState.IN_PROGRESS or batch.ndone:
        return
    attempts = attempts_of(batch, batch.project.rpc)
    if attempts:
        yield f"{attempts[0].upper()}{printable(attempts[1:])}."
        yield f"End the batch with: {command(options, 'abort', batch.id)}"


def _details(ends: Mapping[int, JobEnd]) -> tuple[tuple[Column, Callable[[BatchJob], Cell]], ...]:
    """Return the columns of --details; ``ends``: how the jobs ended."""
    return (
        (
            Column("exit statuses", rank=1, minimum=7),
            lambda job: ", ".join(map(str, job.exit_statuses)),
        ),
        (Column("why", minimum=16), lambda job: ends[job.id].why),
        (Column("inputs", rank=5, minimum=16, middle=True), _of_submitted(_inputs)),
    )


def _job_json(job: BatchJob) -> dict[str, Any]:
    """Return a job; ``cpu_time`` is that of its canonical instance."""
    return {
        **picked(job, "id", "name"),
        "state": job.state.name.lower(),
        "canonical_instance": job.canonical_instance_id or None,
        **picked(job, "cpu_time", "errors", "exit_statuses"),
        **_submitted_json(job),
    }


def show_parser() -> Parser:
    """Return the parser of ``batch show``."""
    parser = Parser(
        "batch show",
        _DESCRIPTION,
        examples=(
            "boinc_gahp batch show 12",
            "boinc_gahp batch show sweep --state failed --details",
            "boinc_gahp batch show sweep --job sweep_007",
            "boinc_gahp batch show sweep --json",
        ),
    )
    state = f"only jobs in this state; may be repeated: {', '.join(_STATES)}"
    details = "show exit statuses of failed jobs, why they failed, and the inputs of all"
    many = {"--limit N": "show at most N jobs", "--all": "show all jobs, even on a terminal"}
    parser.takes(BATCH)
    parser.takes({"--state STATE ...": state}, choices=_STATES, type=lambda s: _NAMES.get(s, s))
    parser.takes({**JOBS, "--details": details})
    declare(parser.add_mutually_exclusive_group(), many)
    parser.takes(PATIENCE)
    return parser.with_common(project=True, json="print JSON")


def show(options: Namespace) -> int:
    """Print the batch; return 0."""
    with opened_to_look(options) as project:
        batch = project.batch(options.batch)
        jobs: Iterable[BatchJob] = batch.jobs(options.job)
        if options.job is not None:
            # Report a wrong name before anything is printed.
            jobs = list(jobs)
        cpu_time = batch.cpu_time() if options.details else None
        if options.json:
            _print_json(options, batch, jobs, cpu_time)
        else:
            print_lines(chain(_facts(batch, cpu_time), lease_lines(options, batch)))
            _print_jobs(options, batch, jobs)
            print_lines(states.unsent_lines(batch))
            print_lines(_attempt_lines(options, batch))
            print_lines(states.reason_lines(options, batch, options.job))
    return 0


def _print_json(
    options: Namespace, batch: Batch, jobs: Iterable[BatchJob], cpu_time: float | None
) -> None:
    chosen = islice((job for job in jobs if _is_wanted(options, job.state)), options.limit)
    # Ask for the first job before anything is printed: no answer is better than half of one.
    values = batch_json(batch) if cpu_time is None else {**batch_json(batch), "cpu_time": cpu_time}
    failed = states.reasons_json(batch, options.job)
    first = list(islice(chosen, 1))
    found = map(_job_json, chain(first, chosen))
    print_json({"batch": values}, jobs=found, **failed)


def _facts(batch: Batch, cpu_time: float | None) -> Iterator[str]:
    """Yield the lines about the batch as a whole."""
    now = time.time()
    yield coloured(f"Batch {batch.id}  {printable(batch.name)}", "bold", sys.stdout)
    rows = [("project", printable(batch.project.url)), ("app", printable(batch.app_name))]
    text, colour = states.batch_words(batch)
    rows.append(("state", coloured(text, colour, sys.stdout) + _REMARKS.get(batch.state, "")))
    if batch.state is not BatchState.INIT:
        fraction = batch.fraction_done
        shown = coloured(bar(fraction, _BAR, sys.stdout), colour, sys.stdout)
        over = f"{batch.nover:,} of {count(batch.njobs, 'job')} over"
        if batch.nerror_jobs:
            over += ", " + coloured(f"{batch.nerror_jobs:,} failed", "red", sys.stdout)
        rows.append(("done", f"{shown} {words.percent(fraction)}  {over}"))
    if batch.create_time:
        rows.append(("created", _time(batch.create_time, words.ago(batch.create_time, now))))
    if batch.is_over and batch.completion_time:
        ended = _time(batch.completion_time, states.end_words(batch))
        # A project notes when somebody asks for the first time after the last job (web-rpcs.rst,
        # "Batch states").
        rows.append(("ended", f"{ended}, or shortly before"))
    end = batch.expected_end
    if end is not None:
        rows.append(("left", f"{words.ahead(end, now)}, at the recent rate"))
    if batch.expire_time and batch.state is not BatchState.RETIRED:
        lease, shade = states.lease_words(batch)
        rows.append(("kept until", _time(batch.expire_time, coloured(lease, shade, sys.stdout))))
    if batch.njobs and batch.manifest is None:
        rows.append(("jobs", _not_known(batch)))
    if batch.info.credit_canonical:
        rows.append(("credit", f"{batch.info.credit_canonical:,.4g}"))
    if cpu_time is not None:
        rows.append(("cpu time", f"{_cpu_time(cpu_time)}, of all instances"))
    width = max(len(head) for head, _ in rows)
    for head, text in rows:
        yield f"  {head:<{width}}  {text}"


_REMARKS = {
    BatchState.INIT: ": its jobs are still being submitted, or that was interrupted",
    BatchState.RETIRED: ": the project deletes its files and jobs",
}


def _time(moment: float, text: str) -> str:
    return f"{words.at(moment)} ({text})"


def _print_jobs(options: Namespace, batch: Batch, jobs: Iterable[BatchJob]) -> None:
    limit = options.limit
    if limit is None and not options.all and sys.stdout.isatty():
        limit = _SHOWN
    choice = Choice(partial(_is_wanted, options), limit)
    more: tuple[tuple[Column, Callable[[BatchJob], Cell]], ...] = ()
    if options.details:
        from boinc_gahp.api.outputs.logs import ends_of

        jobs = list(jobs)
        more = _details(ends_of(batch, (job.info for job in jobs)))
    columns = _COLUMNS + more
    rows = (tuple(value(job) for _, value in columns) for job in jobs if choice(job.state))
    for number, line in enumerate(table.lines([column for column, _ in columns], rows, sys.stdout)):
        print(line if number else f"\n{line}")
    if choice.left_out:
        hint = "." if options.limit is not None else "; --all shows them, too."
        print(f"… and {choice.left_out:,} more{hint}")
    if options.job is None:
        print(f"\n{_summary(choice)}")


def _summary(choice: Choice) -> str:
    counts, total = choice.counts, choice.counts.total()
    if not total:
        return "It has no jobs."
    listed = ", ".join(
        coloured(f"{counts[state]:,} {text}", colour, sys.stdout)
        for state, (text, colour) in zip(JobState, map(states.job_words, JobState), strict=True)
        if counts[state]
    )
    return f"{count(total, 'job')}: {listed}." + ("" if choice.chosen else " None matches.")


def _is_wanted(options: Namespace, state: JobState) -> bool:
    return options.state is None or state.value in options.state


_LIST = """\
Lists your batches, newest first: progress, number of failed jobs, age, end, and how long the
project keeps them. For a running batch, "end" is how long the rest takes at the recent rate. A
narrow terminal shows fewer columns; output to a pipe has all of them.

If the settings have several projects, the batches of all are listed. The batch 12@NAME is batch 12
of the project [projects.NAME]; other commands take it in this form. A project that cannot be asked
is reported, and the others are shown.

Retired batches are not listed, because projects leave them out of their lists. "show" still finds
them by id.
"""

_LISTED = [state for state in BatchState if state not in (BatchState.RETIRED, BatchState.UNKNOWN)]
_BATCH_STATES = [state.words.replace(" ", "-") for state in _LISTED]
#: Their names in JSON, which are taken, too.
_BATCH_NAMES = {
    state.name.lower(): word for state, word in zip(_LISTED, _BATCH_STATES, strict=True)
}

#: Names of HTCondor's batches: 9's (``gridmanager-boinc.rst``), and boinc_gahp's own for 10 and
#: later.
_OF_HTCONDOR = re.compile(r"condor#|bg-[0-9a-f]{32}\b")

#: From this width on, a bar is long.
_WIDE = 120

#: Names of batches differ in their ends: other columns are left out before these are cut.
_NAME = Column("name", minimum=24, middle=True)

_BATCHES = (
    Column("id", right=True),
    _NAME,
    Column("app", rank=7, minimum=10),
    Column("state", rank=1),
    Column("", rank=6),
    Column("over", rank=3, right=True),
    Column("jobs", rank=1, right=True),
    Column("failed", rank=1, right=True),
    Column("age", rank=5, right=True),
    Column("end", rank=4),
    Column("kept for", rank=2, right=True),
)


def list_batches_parser() -> Parser:
    """Return the parser of ``batch list``."""
    parser = Parser(
        "batch list",
        _LIST,
        examples=(
            "boinc_gahp batch list",
            "boinc_gahp batch list --state running --state aborted",
            "boinc_gahp batch list --app uppercase --limit 20 --json",
            "boinc_gahp batch list --project astro --project climate",
        ),
    )
    state = f"only batches in this state; may be repeated: {', '.join(_BATCH_STATES)}"
    others = {
        "--app APP ...": "only batches of this app; may be repeated",
        "--limit N": "show at most N batches, the newest ones",
        "--files": "also tell how many files of your batches are public",
    }
    parser.takes(
        {"--state STATE ...": state},
        choices=_BATCH_STATES,
        type=lambda s: _BATCH_NAMES.get(s, s),
    ).takes(others | PATIENCE)
    return parser.takes(PROJECTS).with_common(json="print JSON")


def list_batches(options: Namespace) -> int:
    """Print the batches; return 0, or 1 if a project could not be asked."""
    found = find_projects(load(options.config), options.project)
    answers = ask_all(options, list(found), lambda project: (project, project.batches()))
    failed = {name: each for name, each in answers.items() if isinstance(each, GahpError)}
    told = {name: each for name, each in answers.items() if not isinstance(each, GahpError)}
    if not told:
        return FAILED
    every = sorted(
        ((name, batch) for name, (_, batches) in told.items() for batch in batches),
        key=lambda each: (each[1].info.create_time, each[1].id),
        reverse=True,
    )
    chosen = [each for each in every if _is_listed(each[1], options.state, options.app)]
    listed = chosen if options.limit is None else chosen[: options.limit]
    if options.json:
        _print_batches(found, failed, listed)
    elif not listed:
        hosts = [project.host for project, _ in told.values()]
        print(_nothing(hosts, [batch for _, batch in every], options.app))
    else:
        print_lines(table_lines([batch for _, batch in listed], one_project=len(found) == 1))
        if len(listed) < len(chosen):
            print(f"… and {len(chosen) - len(listed):,} older ones.")
        for name, batch in listed:
            # For a batch past its lease, this says little; HTCondor renews its own.
            silent = batch.lease_is_over or _OF_HTCONDOR.match(batch.name)
            of = Namespace(project=name or None, config=options.config)
            print_lines(() if silent else lease_lines(of, batch))
    for project in found.values() if options.files and not options.json else ():
        from boinc_gahp.submit.published import usage

        files, nbytes = usage(project.publish_directory)
        if files:
            what = f"{count(files, 'file')} ({size(nbytes)})"
            print(f"Public at {project.publish_url}: {what}.")
    return FAILED if failed else 0


def _print_batches(
    found: Mapping[str, ProjectSettings],
    failed: Mapping[str, GahpError],
    listed: Sequence[tuple[str, Batch]],
) -> None:
    urls = {name: str(project.url) for name, project in found.items()}
    from boinc_gahp.submit.published import usage

    keys = ("published_files", "published_bytes")
    projects = [
        {"name": name or None, "url": urls[name], **error_json(failed.get(name))}
        | dict(zip(keys, usage(project.publish_directory), strict=True))
        for name, project in found.items()
    ]
    batches = ({**batch_json(batch), "project": urls[name]} for name, batch in listed)
    only = next(iter(urls.values())) if len(urls) == 1 else None
    print_json({"project": only}, projects=projects, batches=batches)


def table_lines(batches: Sequence[Batch], *, one_project: bool = True) -> Iterator[str]:
    """Yield the lines of a table of batches; ``one_project``: all are of one."""
    width = width_of(sys.stdout) or _WIDE
    name = replace(_NAME, minimum=max(24, width // 2))
    columns = [name if column is _NAME else column for column in _BATCHES]
    found = (batch_cells(batch, one_project=one_project) for batch in batches)
    rows = ([each[column.title] for column in columns] for each in found)
    return table.lines(columns, rows, sys.stdout)


def batch_cells(batch: Batch, *, one_project: bool = True) -> Mapping[str, Cell]:
    """Return a batch's cells by the titles of columns, in tables of batches; "" is its bar's.

    In a table of several projects, an id is as commands take it: ``12@NAME``.
    """
    now, counts = time.time(), batch.latest_counts
    state = ("gone", "red") if batch.gone else states.batch_words(batch)
    created, name = batch.info.create_time, batch.project.name
    cells: dict[str, Cell] = defaultdict(str)
    cells |= {
        "id": str(batch.id) if one_project or not name else f"{batch.id}@{name}",
        "name": batch.name,
        "app": batch.info.app_name,
        "state": state,
        "jobs": f"{batch.njobs:,}",
        "age": span(now - created) if created else "",
        "end": states.end_words(batch) if batch.is_over or batch.trouble is None else "",
        "kept for": states.lease_words(batch),
    }
    if batch.nerror_jobs:
        cells["failed"] = f"{batch.nerror_jobs:,}", "red"
    if batch.state is not BatchState.INIT:
        length = 20 if (width_of(sys.stdout) or _WIDE) >= _WIDE else 8
        cells[""] = bar(batch.fraction_done, length, sys.stdout), state[1]
        cells["over"] = words.percent(batch.fraction_done)
        numbers = {JobState.DONE: batch.ndone}
        if counts is not None:
            numbers |= {JobState.QUEUED: counts.queued, JobState.IN_PROGRESS: counts.in_progress}
        cells |= {each.value: f"{number:,}" for each, number in numbers.items() if number}
    return cells


def lease_lines(options: Namespace, batch: Batch) -> Iterator[str]:
    """Yield a remark on a batch that the project keeps no longer, or not for long."""
    text = states.lease_warning(batch)
    if text and not batch.lease_is_over:
        text += f": {command(options, 'extend', batch.id, '--for', '30d')}"
    if text:
        yield coloured(text, "yellow", sys.stdout)


def _is_listed(batch: Batch, wanted: list[str] | None, apps: list[str] | None) -> bool:
    return (wanted is None or _BATCH_NAMES.get(batch.state.name.lower()) in wanted) and (
        apps is None or batch.info.app_name in apps
    )


def _nothing(hosts: Sequence[str], others: Sequence[Batch], apps: list[str] | None) -> str:
    where = ", ".join(hosts)
    if others:
        known = {batch.app_name for batch in others}
        unknown = [app for app in apps or () if app not in known]
        near = did_you_mean(unknown[0], known) if unknown else ""
        return f"None of your batches on {where} matches{near or '.'}"
    return (
        f"You have no batches on {where}, except retired ones, which are not listed. "
        '"boinc_gahp batch submit --help" tells how to make one.'
    )
