"""The output of ``boinc_gahp batch submit --dry-run``."""

from __future__ import annotations

import shlex
import sys
from itertools import islice
from typing import TYPE_CHECKING

from boinc_gahp.cli.batch import states
from boinc_gahp.cli.batch.jsons import picked, print_json
from boinc_gahp.containers.job_files import OWN_FILES, is_archive
from boinc_gahp.errors import JobRefused
from boinc_gahp.submit.generated_files import Member
from boinc_gahp.submit.trees import walk
from boinc_gahp.submit.types import InlineFile, LocalFile, RemoteFile
from boinc_gahp.terminal import table
from boinc_gahp.terminal.live import Work
from boinc_gahp.terminal.output import complain, print_lines
from boinc_gahp.terminal.table import Column
from boinc_gahp.text import count, printable, shorten, size, span

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable, Iterator

    from boinc_gahp.api.project import Project
    from boinc_gahp.api.request import Options
    from boinc_gahp.api.submission import Plan, PlannedFile
    from boinc_gahp.cli.batch.job_options import CommandLineJobs
    from boinc_gahp.submit.types import Input, Job

    LookUp = Callable[[Project, Namespace, Work, Options], CommandLineJobs]

#: The most jobs, files and problems to show.
_SHOWN = 10

#: PHP's upload_max_filesize, as shipped (``web-rpcs.rst``, "Files").
_UPLOAD_LIMIT = 2 << 20

_JOBS = (
    Column("job", minimum=16, middle=True),
    Column("args", minimum=8),
    Column("inputs", minimum=16, middle=True),
)
_FILES = (Column("file", minimum=16, middle=True), Column("size", right=True))


def dry_run(project: Project, options: Namespace, more: Options, look_up: LookUp) -> int:
    """Print the plan of a submit; return 0 if nothing is wrong with it, else 1.

    Args:
        project: the project.
        options: the options.
        more: what is given for the whole batch; its name is set, since placeholders may have it.
        look_up: returns the jobs.
    """
    from boinc_gahp.api.progress import StepView

    plans: list[Plan] = []
    with Work() as work:
        jobs = look_up(project, options, work, more)
        more["progress"] = StepView(work.show)
        for part in _parts(project, options, jobs.jobs, more):
            plans.append(project.plan(options.app, part, **more))
    # Of 100,000 rows they take much memory.
    places = jobs.places(more["name"] or "") if any(plan.problems for plan in plans) else {}
    for number, plan in enumerate(plans):
        if number and not options.json:
            print()
        problems = [
            (places.get(name, ""), name, printable(str(error)))
            for name, error in plan.problems.items()
        ]
        if options.json:
            _print_json(project, options, plan, problems)
        else:
            _print(project, options, plan)
        sys.stdout.flush()
        if plan.refusal is not None:
            complain(plan.refusal.with_code())
        for place, name, text in problems[:_SHOWN]:
            complain(plan.problems[name].with_code(f"{place + ': ' if place else ''}{text}"))
        if len(problems) > _SHOWN:
            rest = count(len(problems) - _SHOWN, "more job")
            complain(f"... and {rest} would be refused")
    return 0 if all(plan.is_good for plan in plans) else 1


def _parts(
    project: Project, options: Namespace, jobs: list[Job], more: Options
) -> Iterator[list[Job]]:
    """Yield the jobs of each batch; ``more`` then has the batch's name."""
    if not options.split:
        yield jobs
        return
    from boinc_gahp.api.submission import split

    try:
        parts = split(project.session, options.app, jobs, **more)
    except JobRefused:
        # The size of the others' request does not matter yet; the plan names all refused jobs.
        parts = [("", jobs)]
    for name, part in parts:
        if len(part) < len(jobs):
            more["name"] = name
        yield part


def _print(project: Project, options: Namespace, plan: Plan) -> None:
    request = plan.request
    called = repr(printable(request.batch_name))
    if options.name is None:
        called += " (or a similar name; --name sets it)"
    jobs = count(len(request.jobs), "job")
    print(f"Batch {called}: {jobs} of {printable(request.app_name)} on {project.host}.")
    if plan.batch_id is not None:
        is_whole = plan.jobs_there == len(request.jobs)
        there = "all" if is_whole else f"{plan.jobs_there:,}"
        rest = "nothing" if is_whole else "only the others"
        print(
            f"It is there already (id {plan.batch_id}) with {there} of these jobs; "
            f"{rest} would be sent."
        )
        if not plan.compared:
            print(states.NOT_COMPARED)
    print()
    rows = (
        (name, shlex.join(job.program.command if job.program else job.args), _inputs(job))
        for name, job in request.jobs
    )
    _print_some(_JOBS, rows, len(request.jobs))
    _print_along(options)
    _print_files(plan)
    print(
        f"The request has {size(plan.request_bytes)}; at most "
        f"{size(plan.max_request_bytes)} may be sent (max_post_bytes)."
    )
    _print_sizes(plan)
    if request.input_template_filename or request.output_template_filename:
        print(
            "Template files on the project cannot be checked from here: the project checks them "
            "when the batch is submitted."
        )
    if request.app_version_num is not None:
        print(states.version_words(request.app_name, request.app_version_num))
    image = getattr(options, "image", "")
    if image and not image.startswith(("rootfs:", "oci-archive:")):
        print(f"It was not checked whether the image {printable(image)} exists.")
    if plan.batch_id is None:
        print(f"The project would keep it for {span(plan.lease)}; wait and fetch extend this.")
    if plan.is_good:
        is_sent = plan.jobs_there < len(request.jobs)
        print(f"Nothing is wrong.{' Without --dry-run this is sent.' if is_sent else ''}")
    else:
        refused = count(len(plan.problems), "job")
        what = "The batch" if plan.refusal is not None else refused
        print(f"{what} would be refused: nothing would be sent.")


def _print_sizes(plan: Plan) -> None:
    """Print the values that the project would keep for the jobs' needs, wherever they come from."""
    if plan.sizes:
        units = {"memory_bound": size, "disk_bound": size, "delay_bound": span}
        sizes = {
            name: " to ".join(dict.fromkeys(map(units.get(name, _operations), both)))
            for name, both in plan.sizes.items()
        }
        print(
            f"Each job has: {sizes['fpops_est']} floating-point operations, at most "
            f"{sizes['fpops_bound']}; {sizes['memory_bound']} of memory; {sizes['disk_bound']} of "
            f"disk; {sizes['delay_bound']} until its deadline."
        )
    if plan.jobs_with_template:
        jobs = count(plan.jobs_with_template, "job")
        needs, each = ("needs", "it") if plan.jobs_with_template == 1 else ("need", "each of them")
        print(
            f"{jobs} {needs} other values than the input template has, so the request includes a "
            f"template for {each}: {size(plan.template_bytes)}."
        )


def _operations(number: float) -> str:
    """Return a number of operations as options take it: 3.6e12; small ones in full."""
    head, _, exponent = f"{number:.14e}".partition("e")
    plain = f"{number:.15g}"
    return plain if number < 1e6 else f"{head.rstrip('0').rstrip('.')}e{int(exponent)}"


def _along(options: Namespace) -> Iterator[tuple[str, int]]:
    """Yield the files that a program's words and inputs name, also in directories; and sizes."""
    made = getattr(options, "made", None)
    for source in () if made is None else made.sources:
        if not isinstance(source.file, Member):
            yield source.name, source.nbytes
            continue
        for entry in walk(source.file.path):
            if entry.seen is not None:
                yield f"{source.name}/{entry.name}", entry.seen.size


def _print_along(options: Namespace) -> None:
    rows = [(name, size(nbytes)) for name, nbytes in _along(options)]
    if rows:
        print(f"{options.made.sent_along}:")
        _print_some(_FILES, rows, len(rows))


def _print_files(plan: Plan) -> None:
    sent = [file for file in plan.files if file.url is None]
    absent = [file for file in sent if not file.present]
    made = _made(plan)
    if sent:
        present = len(sent) - len(absent)
        rest = f"{len(absent):,} would be sent ({size(plan.nbytes)}):" if absent else ""
        print(
            f"Of {count(len(sent), 'file')} the project has {present:,}; "
            f"{rest or 'nothing would be sent.'}"
        )
        _print_some(_FILES, _rows(absent, made), len(absent))
    public = [file for file in plan.files if file.url is not None]
    if public:
        print(
            f"{count(len(public), 'file')} would be public as long as a job needs "
            f"{'it' if len(public) == 1 else 'them'}, at {str(public[0].url)[:-35]}:"
        )
        _print_some(_FILES, _rows(public, made), len(public))
    largest = max((file.nbytes for file in absent), default=0)
    if largest > _UPLOAD_LIMIT:
        print(
            f"The largest has {size(largest)}: with PHP's defaults a project takes no file "
            "over 2 MiB (upload_max_filesize)."
        )


def _rows(files: Iterable[PlannedFile], made: dict[str, str]) -> Iterator[tuple[str, str]]:
    return ((made.get(file.path, file.path), size(file.nbytes)) for file in files)


def _print_some(columns: tuple[Column, ...], rows: Iterable[tuple[str, ...]], total: int) -> None:
    print_lines(table.lines(columns, islice(rows, _SHOWN), sys.stdout, indent="  "))
    if total > _SHOWN:
        print(f"  ... and {total - _SHOWN:,} more")
    if total:
        print()


def _inputs(job: Job) -> str:
    if job.program is not None:
        return " ".join(job.program.inputs)
    return " ".join(f"{name}={_file(item)}" for name, item in job.files.items())


def _made(plan: Plan) -> dict[str, str]:
    """Return what to call the files that are made for programs, by their paths."""
    found = {}
    for _, job in plan.request.jobs:
        for name, item in job.files.items() if job.program is not None else ():
            if isinstance(item, LocalFile) and (name in OWN_FILES or is_archive(name)):
                found[item.path] = f"{name} (made for these jobs)"
    return found


def _file(item: Input) -> str:
    if isinstance(item, LocalFile):
        return item.path
    if isinstance(item, RemoteFile):
        return item.url
    if isinstance(item, InlineFile):
        return f"inline:{shorten(item.text, 30)}"
    return f"staged:{item.physical_name}"


def _print_json(
    project: Project, options: Namespace, plan: Plan, problems: list[tuple[str, str, str]]
) -> None:
    request = plan.request
    document = {
        "name": request.batch_name,
        "app": request.app_name,
        "project": project.url,
        "good": plan.is_good,
        "refusal": None if plan.refusal is None else str(plan.refusal),
        "refusal_code": None if plan.refusal is None else plan.refusal.code,
        "id": plan.batch_id,
        "jobs": len(request.jobs),
        **picked(plan, "jobs_there", "compared", "jobs_that_fit"),
        **picked(plan, "request_bytes", "max_request_bytes"),
        "bytes_to_send": plan.nbytes,
        **picked(plan, "lease", "jobs_with_template", "template_bytes"),
    }
    print_json(
        document,
        problems=(
            {"job": name, "place": place or None, "message": text, "code": plan.problems[name].code}
            for place, name, text in problems
        ),
        files=(
            {**picked(file, "path", "physical_name", "present", "url"), "size": file.nbytes}
            for file in plan.files
        ),
        sent_along=({"path": name, "size": nbytes} for name, nbytes in _along(options)),
        sizes=(
            {"name": name, "least": least, "most": most}
            for name, (least, most) in plan.sizes.items()
        ),
    )
