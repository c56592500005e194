"""Misbehaviour at random: what goes wrong with a request is drawn from the seed.

The draw depends on the seed, the RPC and how many requests of that RPC came before. So a seed
makes the same misbehaviours each time, though not always to the same requests: what comes first
depends on threads and processes.
"""

import random
import re
import threading
import time
import zlib
from collections import Counter
from urllib.parse import unquote_plus

from tests import faultproxy
from tests.soak.work import HOUR

_GATEWAY = (502, 503, 504)
_NAMED = re.compile(r"<(?:batch_name|batch_id|job_name)>\s*([^<]*?)\s*</")
#: What may be refused for a single batch or job as if it were somebody else's. Queries are not: a
#: project says so of a batch that is gone, and then its jobs are lost. Leases are renewed: a batch
#: whose lease nobody can renew is ended by the project, and its jobs with it.
_OF_ONE = frozenset({"retire_batch", "abort_jobs"})
_ABOUT_BATCHES = _OF_ONE | {"query_batch", "query_batch2"}
_NOT_OWNER = (
    b'<?xml version="1.0" encoding="ISO-8859-1" ?>\n<%(rpc)s>\n<error>\n'
    b"    <error_num>-1</error_num>\n    <error_msg>not owner of batch</error_msg>\n</error>\n"
    b"</%(rpc)s>\n"
)
#: Empty comments, and what is no page: reading it as the beginning of one must not take for ever.
_COMMENTS = b"<!---->" * 40 + b"x"

#: By name: how many of 1,000 queries it happens to, and the fault; it gets a source of chance, and
#: the seconds that the client waits for an answer.
PASSING = {
    "lost-reply": (4, lambda _chance, _read: faultproxy.lose_reply()),
    "lost-request": (4, lambda _chance, _read: faultproxy.lose_request()),
    "reset": (2, lambda chance, _read: faultproxy.reset(chance.random())),
    "5xx": (
        8,
        lambda chance, _read: faultproxy.status(
            chance.choice((500, *_GATEWAY)), carried_out=chance.random() < 0.5
        ),
    ),
    "html-page": (4, lambda chance, _read: faultproxy.html(carried_out=chance.random() < 0.5)),
    "php-warning": (
        6,
        lambda chance, _read: faultproxy.php_warnings(
            before=chance.random() < 0.7, inside=chance.random() < 0.7, after=chance.random() < 0.3
        ),
    ),
    "cut-xml": (
        4,
        lambda chance, _read: faultproxy.cut(chance.random(), honest=chance.random() < 0.5),
    ),
    "comments": (2, lambda _chance, _read: faultproxy.body(_COMMENTS)),
    "hang": (0.5, lambda chance, read: _silent(read * 1.2, carried_out=chance.random() < 0.5)),
    "slow-trickle": (
        1,
        lambda chance, read: faultproxy.drip(chance.uniform(0.2, 0.9) * read / 20, pieces=20),
    ),
}
#: Requests for a file, and what happens to these instead: from the bytes of an output nobody can
#: tell that some are missing, or are PHP's, if its length says that it is whole.
_OUTPUTS = frozenset({"result_file", "workunit_file"})
_FOR_OUTPUTS = {
    "php-warning": lambda chance, _read: faultproxy.cut(chance.random()),
    "cut-xml": lambda chance, _read: faultproxy.cut(chance.random()),
}

#: What changes something on the project is asked for seldom, and goes wrong more often.
_CHANGES = frozenset(
    {"create_batch", "submit_batch", "upload_files", "abort_jobs", "abort_batch", "retire_batch"}
)
_MORE_OFTEN = 6

#: By name: what goes on until it is healed, and of how many of 1,000 objects.
LASTING = {
    # A front end that gives up whenever a certain batch with jobs is asked about.
    "batch-504": 10,
    # A batch cannot be retired, or a job not be aborted.
    "not-owner": 20,
    # Nothing works at all, for a quarter of an hour.
    "outage": 30,
    # Each change is made, and nobody is told, for an hour.
    "replies-lost": 80,
}
NAMES = (*PASSING, *LASTING)


def _silent(seconds, *, carried_out):
    def run(exchange):
        if carried_out:
            exchange.forward()
        else:
            exchange.read_body()
        exchange.closing.wait(seconds)
        return False

    return run


class Faults:
    """Chooses what goes wrong with a request; for ``FaultProxy.choose``.

    Args:
        names: of the faults that happen, of :data:`NAMES`.
        read: seconds that clients wait for an answer.
        is_made: tells of a batch, by its name or id, whether its jobs are on the project.
    """

    def __init__(self, names, seed, clock, read, is_made=lambda _: True):
        self._is_made = is_made
        self._passing = [(name, *PASSING[name]) for name in names if name in PASSING]
        self._lasting = {name: LASTING[name] for name in names if name in LASTING}
        self._seed = seed
        self._clock = clock
        self._read = read
        self._lock = threading.Lock()
        self._numbers = Counter()
        self._stopped = threading.Event()
        #: How often each has happened.
        self.happened = Counter()

    def stop(self):
        """Let nothing go wrong any more."""
        self._stopped.set()

    def __call__(self, exchange):
        """Return the fault for a request, if it is to have one."""
        if self._stopped.is_set():
            return None
        with self._lock:
            self._numbers[exchange.rpc] += 1
            number = self._numbers[exchange.rpc]
        name, fault = self._choose(exchange, random.Random(f"{self._seed} {exchange.rpc} {number}"))
        if fault is not None:
            with self._lock:
                self.happened[name] += 1
        return fault

    def is_stuck(self, batch):
        """Tell whether a batch, by its name or id, cannot be asked about before all is healed."""
        if self._stopped.is_set() or not self._lasts("batch-504", batch):
            return False
        return self._is_made(batch)

    def _choose(self, exchange, chance):
        gateway = faultproxy.status(chance.choice(_GATEWAY), carried_out=False)
        hours = (time.time() - self._clock.origin) / HOUR
        if self._lasts("outage", f"{hours * 4:.0f}"):
            return "outage", gateway
        if exchange.rpc in _CHANGES and self._lasts("replies-lost", f"{hours:.0f}"):
            return "replies-lost", faultproxy.lose_reply()
        if exchange.rpc in _ABOUT_BATCHES:
            named = _named(exchange)
            if any(map(self.is_stuck, named)):
                return "batch-504", gateway
            if exchange.rpc in _OF_ONE and any(self._lasts("not-owner", name) for name in named):
                rpc = exchange.rpc.encode()
                # Jobs of which it is not said are aborted all the same.
                done = exchange.rpc == "abort_jobs" and len(named) > 1
                return "not-owner", faultproxy.body(_NOT_OWNER % {b"rpc": rpc}, carried_out=done)
        draw = chance.uniform(0, 1000)
        if exchange.rpc in _CHANGES:
            draw /= _MORE_OFTEN
        for name, weight, make in self._passing:
            draw -= weight
            if draw < 0:
                special = _FOR_OUTPUTS.get(name) if exchange.rpc in _OUTPUTS else None
                return name, (special or make)(chance, self._read)
        return "", None

    def _lasts(self, kind, name):
        """Tell whether an object has a fault."""
        draw = zlib.crc32(f"{self._seed} {kind} {name}".encode()) % 1000
        return draw < self._lasting.get(kind, 0)


def _named(exchange):
    """Return the batches and jobs that a request names, by name or id."""
    exchange.read_body()
    text = bytes(exchange.body).decode("utf-8", "replace")
    if "urlencoded" in exchange.header("content-type"):
        text = unquote_plus(text)
    return _NAMED.findall(text)
