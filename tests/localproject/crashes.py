"""Killing a program in the middle of what it does: at any statement, at any change of a file.

The work is done in a child process that kills itself with SIGKILL at the n-th point. Nothing of it
is undone by Python: no ``finally``, no ROLLBACK, as with ``kill -9`` of ``local-project run``.
"""

import os
import signal
import sys
import traceback
import warnings

#: Audit events of changes to what files there are, and to what is in them.
_CHANGES = frozenset({"os.remove", "os.rename", "os.truncate"})
_FAILED = 1


def crash(point, work):
    """Do ``work`` in a child that dies at the ``point``-th statement or change of a file, from 1.

    Statements are those of the connections that ``work`` hands to :meth:`Points.watch`; each counts
    when it is about to run, BEGIN and COMMIT too. Only SELECT does not: to die before one leaves
    the same as to die before what follows. No connection may be open when this is called: SQLite's
    do not survive a fork.

    Returns:
        What the child died before (``COMMIT``, ``UPDATE workunit``, ``os.remove``), or None if it
        came to its end first.

    Raises:
        AssertionError: ``work`` has raised.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Newer Pythons warn where other threads exist, as in a worker of xdist: they stay out of
        # the child, and it needs none of their locks.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os.close(reading)
        _work(Points(point, writing), work, writing)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, f"died of signal {os.WTERMSIG(status)}"
        return said
    assert os.WEXITSTATUS(status) == 0, said
    return None


class Points:
    """Counts what happens in the child, and kills it at its point."""

    def __init__(self, point, pipe):
        self._left = point
        self._pipe = pipe

    def watch(self, connection):
        """Count a connection's statements and, from now on, changes of files."""
        connection.set_trace_callback(self._statement)
        sys.addaudithook(self._event)

    def _statement(self, statement):
        words = statement.split()
        verb = words[0].upper()
        if verb == "SELECT":
            return
        if verb in ("UPDATE", "INSERT", "DELETE"):
            verb = f"{verb} {words[1] if verb == 'UPDATE' else words[2]}"
        self._pass(verb)

    def _event(self, event, arguments):
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT
        if event in _CHANGES or writes:
            self._pass(event)

    def _pass(self, what):
        self._left -= 1
        if self._left == 0:
            os.write(self._pipe, what.encode())
            os.kill(os.getpid(), signal.SIGKILL)


def _work(points, work, writing):
    status = _FAILED
    try:
        work(points)
        status = 0
    except BaseException:  # noqa: BLE001
        os.write(writing, traceback.format_exc().encode()[-60_000:])
    finally:
        os._exit(status)
