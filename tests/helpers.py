"""What tests of every room share."""

import functools
import http.server
import importlib
import os
import pkgutil
import resource
import signal
import ssl
import subprocess
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import trustme
from hypothesis import strategies as st

import boinc_gahp
from boinc_gahp.cli.main import main
from boinc_gahp.errors import GahpError
from boinc_gahp.rpc._reply_errors import meaning

#: Any text that was decoded from bytes.
TEXTS = st.binary().map(lambda data: data.decode("utf-8", "surrogateescape")) | st.text(
    st.characters(exclude_categories=["Cs"])
)


def wait_for(condition, what, timeout=60.0, pause=0.02):
    """Return the first true value of ``condition()``; fail with ``what`` after ``timeout`` s.

    ``pause`` is for conditions that cost something: seconds from one look to the next.
    """
    never = threading.Event()
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {what}")
        never.wait(pause)


def at_once(work, items):
    """Do something with each item, in a thread of its own, all at a time; return the results."""
    items = list(items)
    begin = threading.Barrier(len(items))

    def run(item):
        begin.wait()
        return work(item)

    with ThreadPoolExecutor(len(items)) as threads:
        return list(threads.map(run, items))


def hang_up(child):
    """End what runs in a terminal as closing the terminal's window does, and wait until it has.

    pexpect's own close gives it tenths of a second, which a busy machine may not have.
    """
    if child.isalive():
        child.kill(signal.SIGHUP)
        try:
            wait_for(lambda: not child.isalive(), "the end of what ran in the terminal")
        except AssertionError:
            child.kill(signal.SIGKILL)
            wait_for(lambda: not child.isalive(), "the end of what was killed in the terminal")
            raise
    child.close()


def ran(*words, environ=(), timeout=60, **options):
    """Run a program to its end; return its exit status and, as text, what it printed.

    ``environ`` is laid over this process's environment; ``env`` takes its place.
    """
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": timeout}
    given |= {"env": {**os.environ, **dict(environ)}, **options}
    return subprocess.run([*map(str, words)], check=False, encoding="utf-8", **given)


def command(capsys, *words):
    """Do a command of boinc_gahp in this process; return its exit status, output and errors."""
    capsys.readouterr()
    try:
        status = main([*map(str, words)])
    except SystemExit as leave:
        status = int(leave.code or 0)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def certified(directory, *names):
    """Return a server's TLS context for these names, and the bundle that makes it trusted."""
    authority, bundle = trustme.CA(), directory / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context, bundle


def refusal(words, rpc="submit_batch", host="p", number=-1):
    """Return the error that a project's words become."""
    kind, named, _ = meaning(number, words)
    return kind(
        f"{host} refuses {rpc}: {words}",
        rpc=rpc,
        host=host,
        number=number,
        words=words,
        named=named,
    )


def most_memory(do):
    """Return how many bytes of Python's objects there were at most while something was done."""
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@contextmanager
def served(directory):
    """Serve a directory's files on this machine; yield the address."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Say nothing."""

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_):
            """Say nothing: whoever wants no more has broken off."""

    handler = functools.partial(Handler, directory=str(directory))
    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def files_up_to(nbytes):
    """Let no file of this process grow larger, as on a disk without room for it."""
    most, bound = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, bound))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, bound))


@functools.cache
def error_classes():
    """Return all of the program's classes of errors that have a code."""
    for module in pkgutil.walk_packages(boinc_gahp.__path__, "boinc_gahp."):
        # The workflows need Snakemake, and have no errors.
        if not module.name.startswith("boinc_gahp.workflows"):
            importlib.import_module(module.name)

    def below(base):
        return [base, *(found for child in base.__subclasses__() for found in below(child))]

    found = dict.fromkeys(below(GahpError))
    return tuple(each for each in found if each.__module__.startswith("boinc_gahp."))
