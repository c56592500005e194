"""What a history consists of, kept apart from the database: plans, sends, answers.

Apps' ways to compare are told in two ways: to the project as an app's validator, and here as
:func:`agree`.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boinc_gahp.localproject.views import Instance


@dataclass(frozen=True, slots=True)
class Plan:
    """What the jobs of a batch are like; names as in ``back-end.md``, "Transitioner"."""

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
    def good(self) -> bool:
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


def payload(result: str, kind: str) -> bytes:
    """Return what a host of some kind makes of a result: a number."""
    if kind == "odd":
        return f"{1000 + 10 * zlib.crc32(result.encode())}".encode()
    return {"right": b"42", "close": b"43", "wrong": b"61"}.get(kind, b"half of it is lost")


def agree(app: str, one: Answer, other: Answer) -> bool:
    """Whether two answers are the same to an app."""
    validator = APPS[app].validator
    if validator == "trivial":
        return True
    if validator == "bitwise":
        return one.payload == other.payload
    return _near(one.payload, other.payload)


def _near(one: bytes, other: bytes) -> bool:
    return abs(int(one) - int(other)) < 5


def near(one: Instance, other: Instance) -> bool:
    """Compare two results, as an app's own validator."""
    first, second = one.file("out"), other.file("out")
    assert first
    assert second
    return _near(first.path.read_bytes(), second.path.read_bytes())
