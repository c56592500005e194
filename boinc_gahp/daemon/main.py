"""The daemon on pipes, from banner to exit.

Before the banner is out, nearly nothing is imported that the interpreter has not loaded anyway:
until the gridmanager has the banner, it spins on the pipe and uses a whole core (``gahp.rst``,
"Start-up", 2).
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from boinc_gahp.daemon._wakeup import Wakeup
from boinc_gahp.gahp.banner import BANNER

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.config.settings import Settings
    from boinc_gahp.daemon._projects import MakeService, OpenContext, Projects

#: Seconds after which the shutdown is cut short, in case a disk hangs.
LEAVING = 5.0
#: Seconds of these that a hanging disk and a hanging project may each take before that.
TELLING = 1.0
CLOSING = 3.0


def serve(
    load_settings: Callable[[], Settings],
    *,
    open_context: OpenContext | None = None,
    on_settings: Callable[[Settings], object] | None = None,
    make_service: MakeService | None = None,
) -> NoReturn:
    """Talk GAHP on stdin and stdout until the client is gone, then end the process.

    The exit status is 0 after QUIT, end of input, SIGTERM, SIGINT, SIGHUP, and when nobody reads
    stdout. Errors in settings show in the results of requests: if the daemon exited because of
    them, the gridmanager would start it again and again.

    Args:
        load_settings: called in a thread of its own, after the banner.
        open_context: for tests; None: the project's web RPCs.
        on_settings: called with the settings before a project is used; here the log is started.
        make_service: for tests; None: the service that keeps HTCondor's jobs.
    """

    def open_projects() -> Projects:
        from boinc_gahp.daemon._projects import Projects  # noqa: PLC0415  (after the banner)

        return Projects(load_settings, open_context, on_settings, make_service)

    _open_closed_descriptors()
    wakeup = Wakeup()
    wakeup.catch_signals()
    try:
        _write_banner(1)
        prepare_process()
        _converse(wakeup, open_projects)
    except BrokenPipeError:
        pass  # the client is gone: an ordinary end
    except BaseException as error:  # noqa: BLE001  (the process ends here, on purpose)
        _report(error)
        leave(1)
    leave(0)


def forbid_core_dumps() -> None:
    """Have no core file written if the process crashes: it would contain authenticators.

    Call it before any is read. It cannot be undone: it sets the hard limit, too.
    """
    import resource  # noqa: PLC0415  (not for those who only import serve)

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def leave(status: int) -> NoReturn:
    """End the process without waiting for its threads; leave no partial file behind.

    An ordinary exit would join the threads of every executor, and one of them may be in the middle
    of an upload that takes hours. Functions registered with atexit run all the same: they flush
    logs and write coverage data.
    """
    import atexit  # noqa: PLC0415
    import threading  # noqa: PLC0415

    watchdog = threading.Timer(LEAVING, os._exit, [status])
    watchdog.daemon = True
    with suppress(RuntimeError):  # a limit on threads
        watchdog.start()
    # A thread may be in the middle of importing it: then there is nothing to remove yet.
    temporary = sys.modules.get("boinc_gahp.fetch.temporary")
    remove_all = getattr(temporary, "remove_all", None)
    if remove_all is not None:
        remove_all()
    atexit._run_exitfuncs()  # noqa: SLF001  (the only way to them but an ordinary exit)
    os._exit(status)


def _open_closed_descriptors() -> None:
    """Make sure that none of our pipes and files becomes stdin, stdout or stderr."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one


def _write_banner(fd: int) -> None:
    left = BANNER
    while left:
        left = left[os.write(fd, left) :]


def _converse(wakeup: Wakeup, open_projects: Callable[[], Projects]) -> None:
    from boinc_gahp.daemon._engine import Engine  # noqa: PLC0415  (after the banner, see above)
    from boinc_gahp.daemon._loop import Loop  # noqa: PLC0415

    _watch_program()
    projects = open_projects()
    projects.prepare()
    engine = Engine(projects, on_result=wakeup.notify)
    try:
        Loop(engine, wakeup, 0, 1).run()
    finally:
        # Record what HTCondor was told and release its jobs, in a few seconds at most: what is lost
        # if time runs out, the next daemon does again.
        engine.finish_telling(TELLING)
        projects.close_service(CLOSING)


def _watch_program() -> None:
    import signal  # noqa: PLC0415
    import threading  # noqa: PLC0415

    from boinc_gahp.daemon._housekeeping import Program  # noqa: PLC0415  (after the banner)
    from boinc_gahp.threads import start  # noqa: PLC0415

    program, never = Program(sys.argv[0]), threading.Event()
    start(lambda: program.watch(never, lambda: os.kill(os.getpid(), signal.SIGTERM)), "program")


def prepare_process() -> None:
    """Keep libraries from writing to stderr, and the garbage collector from slowing long lines."""
    import gc  # noqa: PLC0415
    import logging  # noqa: PLC0415

    # Without any handler, logging prints warnings to stderr, which HTCondor shows to users.
    logging.getLogger().addHandler(logging.NullHandler())
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # a full disk is no reason to print it either
    # A submit of 100,000 jobs makes a million objects, none of them in a cycle; with the usual
    # thresholds a third of the time goes into scanning all of them again and again. But lxml's
    # parsers are in cycles: 20 objects and 10 kB of its own for each reply, until they are found.
    gc.set_threshold(10_000, 20, 20)


def _report(error: BaseException) -> None:
    import logging  # noqa: PLC0415

    logging.getLogger().addHandler(logging.NullHandler())  # else it prints the traceback to stderr
    logging.getLogger("boinc_gahp.daemon").critical("the daemon ends with an error", exc_info=error)
    text = f"boinc_gahp: the daemon ends with {type(error).__name__}: {error}\n"
    os.write(2, text.encode("utf-8", "backslashreplace"))
