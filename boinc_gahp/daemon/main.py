"""The daemon on pipes, from banner to exit.

Before the banner is out, nearly nothing is imported that the interpreter has not loaded anyway:
until the gridmanager has the banner, it spins on the pipe and uses a whole core (``gahp.rst``,
"Start-up", 2).
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from boinc_gahp.gahp.banner import BANNER

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from boinc_gahp.config.settings import Settings

#: Seconds after which the shutdown is cut short, in case a disk hangs.
LEAVING = 5.0
#: Seconds of these that a hanging disk or project may take before that.
CLOSING = 3.0

#: All of them mean: stop now (the gridmanager sends SIGTERM, a terminal the others).
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Wakeup:
    """A pipe from the process to itself.

    Signals only set a flag and make the pipe readable: an exception from a signal handler could
    strike anywhere, even in the middle of a write.
    """

    def __init__(self) -> None:
        self.fd, self._write_fd = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write_fd, False)
        self.stopped = False
        self._notified = False

    def notify(self) -> None:
        """Make the loop look for results; any thread may call it, after it has left its result."""
        if self._notified:
            return  # the loop has not looked yet: it will find this result, too
        self._notified = True
        with suppress(BlockingIOError):  # the pipe is full: then the loop will look anyway
            os.write(self._write_fd, b"\0")

    def clear(self) -> None:
        """Remember that the loop looks now; it looks after this call."""
        with suppress(BlockingIOError):
            os.read(self.fd, 4096)
        self._notified = False

    def catch_signals(self) -> None:
        """Make the signals that mean "stop" end the loop; call it in the main thread."""
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup sets it
                signal.signal(number, self._on_signal)
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.stopped = True


def serve(
    load_settings: Callable[[], Settings],
    on_settings: Callable[[Settings], object] = lambda _settings: None,
) -> NoReturn:
    """Talk GAHP on stdin and stdout until the client is gone, then end the process.

    The exit status is 0 after QUIT, end of input, SIGTERM, SIGINT, SIGHUP, and when nobody reads
    stdout. Errors in settings show in the results of requests: if the daemon exited because of
    them, the gridmanager would start it again and again.

    Args:
        load_settings: called in a thread of its own, after the banner.
        on_settings: called with the settings before a project is used; here the log is started.
    """
    _open_closed_descriptors()
    wakeup = Wakeup()
    wakeup.catch_signals()
    try:
        _write_banner(1)
        prepare_process()
        _converse(wakeup, load_settings, on_settings)
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
    registry = getattr(temporary, "registry", None)
    if registry is not None:
        registry.remove_all()
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


def _converse(
    wakeup: Wakeup,
    load_settings: Callable[[], Settings],
    on_settings: Callable[[Settings], object],
) -> None:
    import threading  # noqa: PLC0415  (after the banner, see above)
    from functools import partial  # noqa: PLC0415

    from boinc_gahp.daemon._engine import Engine  # noqa: PLC0415
    from boinc_gahp.daemon._housekeeping import Program  # noqa: PLC0415
    from boinc_gahp.daemon._loop import Loop  # noqa: PLC0415
    from boinc_gahp.daemon._projects import Projects  # noqa: PLC0415
    from boinc_gahp.threads import start  # noqa: PLC0415

    start(partial(Program(sys.argv[0]).watch, threading.Event()), "program")
    projects = Projects(load_settings, on_settings)
    projects.prepare()
    engine = Engine(projects, on_result=wakeup.notify)
    try:
        Loop(engine, wakeup, 0, 1).run()
    finally:
        # Record what HTCondor was told and release its jobs, in a few seconds at most: what is lost
        # if time runs out, the next daemon does again.
        projects.close_service(CLOSING)


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
