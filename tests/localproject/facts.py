"""What a history consists of, kept apart from the database: plans, sends, answers.

Apps' ways to compare are told in two ways: to the project as an app's validator, and here as
:func:`agree`.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

#: No smaller number is like no other.
_ODD = 1000
#: Numbers that differ by less are close.
_NEAR = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """What the jobs of a batch are like; names as in ``back-end.rst``, "Transitioner"."""

    app: str = "any"
    quorum: int = 1
    target: int = 1
    errors: int = 3
    total: int = 10
    successes: int = 6
    large: bool = False
    own_input: bool = True
    delete_time: float = 0.0


@dataclass(frozen=True, slots=True)
class App:
    """An app: how its results are compared, and whether its files are to be kept."""

    validator: str
    keep: bool


APPS = {
    "any": App("trivial", keep=True),
    "equal": App("bitwise", keep=False),
    "near": App("tests.localproject.facts:near", keep=False),
}


@dataclass(frozen=True, slots=True)
class Sent:
    """That a host was given a result."""

    host: int
    deadline: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What a host said.

    ``kind`` is right, close (to right), wrong, odd (like no other), error, or cut (what arrived is
    not what was said).
    """

    kind: str
    payload: bytes

    @property
    def good(self):
        """Whether the server is to take it for a success."""
        return self.kind in ("right", "close", "wrong", "odd")


@dataclass(slots=True)
class Facts:
    """What has happened, kept apart from the database."""

    plans: dict[str, Plan] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)
    """Each job's batch."""
    inputs: dict[str, str] = field(default_factory=dict)
    """Each job's input file."""
    cancelled: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    """Batches that were aborted or retired."""
    retired: set[str] = field(default_factory=set)
    expire: dict[str, float] = field(default_factory=dict)
    sent: dict[str, Sent] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    """Each uploaded file's result."""


def payload(result, kind):
    """Return what a host of some kind makes of a result: a number."""
    if kind == "odd":
        return f"{_ODD + 10 * zlib.crc32(result.encode())}".encode()
    return {"right": b"42", "close": b"43", "wrong": b"61"}.get(kind, b"half of it is lost")


def agree(app, one, other):
    """Whether two answers are the same to an app."""
    validator = APPS[app].validator
    if validator == "trivial":
        return True
    if validator.endswith("near"):
        return abs(int(one.payload) - int(other.payload)) < _NEAR
    return one.payload == other.payload


def near(one, other):
    """Compare two results, as an app's own validator."""
    return abs(_number(one) - _number(other)) < _NEAR


def _number(instance):
    file = instance.file("out")
    assert file
    return int(file.path.read_bytes())
