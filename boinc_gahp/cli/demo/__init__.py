"""``boinc_gahp demo``: the whole life of a batch, on this machine, in under a minute."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.errors import GahpError
from boinc_gahp.extras import need_extra
from boinc_gahp.terminal import Parser

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from boinc_gahp.cli.demo.batch import DemoBatch

_INPUTS = (
    "The quick brown fox jumps over the lazy dog.\n",
    "Jobs go out to volunteers, and their outputs come back.\n" * 100,
    "Grüße aus dem Rechenzentrum: ß, é, ø and λ are letters, too.\n",
)
_JOBS = 20
_HOSTS = 4
#: Seconds after which something must have gone wrong.
_TIMEOUT = 120.0
_TERMINATED = 128 + signal.SIGTERM

_DESCRIPTION = """\
Starts a BOINC project with volunteers on this machine, and the daemon as HTCondor would start it.
Submits a batch of 20 jobs, watches it, fetches and checks every output, and retires the batch.
"""


class DemoTrouble(GahpError):
    """The demo cannot go on; the text says why."""

    code = "BG-DEMO-TROUBLE"


def run(arguments: list[str], _config: str | None) -> int:
    """Run the demo; return the exit status."""
    options = run_parser().read(arguments)
    need_extra("local-project", "the demo", "flask", "waitress")
    directory, is_ours = _directory(options.directory)
    before = signal.signal(signal.SIGTERM, _leave)
    done = False
    try:
        with _scratch(directory, keep=options.keep):
            status = _demonstrate(directory, options.show_conversation)
        done = True
        return status
    finally:
        signal.signal(signal.SIGTERM, before)
        if is_ours and not done and not options.keep:
            shutil.rmtree(directory, ignore_errors=True)


def run_parser(_config: str | None = None) -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "demo",
        _DESCRIPTION,
        examples=(
            "boinc_gahp demo",
            "boinc_gahp demo --show-conversation --directory ~/demo --keep",
        ),
        statuses={
            0: "every output is right",
            1: "an output is wrong, or the demo failed; stderr says why",
        },
    )
    parser.add_argument(
        "--show-conversation", action="store_true", help="print the GAHP lines that were exchanged"
    )
    parser.completes(
        parser.add_argument(
            "--directory",
            type=Path,
            metavar="DIR",
            help="a new or empty directory for inputs and outputs (default: a temporary one)",
        ),
        "directory",
    )
    parser.add_argument(
        "--keep", action="store_true", help="also keep the project, its database and the log there"
    )
    return parser


def _demonstrate(directory: Path, show_conversation: bool) -> int:
    from boinc_gahp.cli.demo.batch import DemoBatch
    from boinc_gahp.cli.demo.view import View
    from boinc_gahp.cli.gahp_client import ConversationError
    from boinc_gahp.localproject import LocalProject, ProjectDirectoryError, ProjectFailed

    begun = time.monotonic()
    try:
        print("Starting a BOINC project with volunteers on this machine ...", flush=True)
        with LocalProject(directory / "project", hosts=_HOSTS) as project:
            print(f"It answers at {project.url}. Starting the daemon on pipes ...", flush=True)
            batch = DemoBatch(directory, _write_inputs(directory), _JOBS)
            with _talking(batch, show_conversation), View(list(batch.jobs)) as view:
                batch.run(project.url, project.authenticator, view, begun + _TIMEOUT)
    except BrokenPipeError:
        raise
    except ConversationError as error:
        raise DemoTrouble(f"{error} (--keep keeps the daemon's log)") from error
    except (ProjectFailed, ProjectDirectoryError, OSError) as error:
        raise DemoTrouble(str(error)) from error
    right = batch.right
    print(f"{right} of {_JOBS} outputs are right; they are in {batch.outputs}")
    print(f"That took {time.monotonic() - begun:.1f} s.")
    return 0 if right == _JOBS else 1


@contextmanager
def _talking(batch: DemoBatch, show_conversation: bool) -> Iterator[None]:
    """End the conversation in any case, and print it if requested."""
    try:
        with batch.gahp:
            yield
    finally:
        if show_conversation:
            print("\nThe conversation ('>' from us to the daemon, '<' from it):", flush=True)
            for line in batch.gahp.conversation:
                text = f"{'>' if line.who == 'client' else '<'} {line.line}\n"
                sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
            print(flush=True)


def _write_inputs(directory: Path) -> list[Path]:
    inputs = directory / "inputs"
    inputs.mkdir()
    paths = []
    for number, text in enumerate(_INPUTS):
        path = inputs / f"text{number}.txt"
        path.write_text(text, "utf-8")
        paths.append(path)
    return paths


def _directory(named: Path | None) -> tuple[Path, bool]:
    """Return the directory for all files, and whether it was made only for this demo."""
    if named is None:
        return Path(tempfile.mkdtemp(prefix="boinc_gahp-demo-")), True
    directory = named.expanduser().absolute()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise DemoTrouble(f"{directory} is not empty; name a new or an empty directory")
    except OSError as error:
        raise DemoTrouble(f"{directory} cannot be used: {error.strerror}") from error
    return directory, False


@contextmanager
def _scratch(directory: Path, *, keep: bool) -> Iterator[None]:
    """Remove the files, unless they are to be kept."""
    try:
        yield
    finally:
        if keep:
            print(f"The project and the daemon's log are kept in {directory}")
        else:
            for name in ("project", "daemon"):
                shutil.rmtree(directory / name, ignore_errors=True)


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(_TERMINATED)
