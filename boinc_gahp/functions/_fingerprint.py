"""Fingerprints of functions and arguments: equal whenever the same program runs again.

The bytes of a pickle differ between interpreters although nothing has changed: sets have another
order, classes get random names from cloudpickle, and code has the names of files and numbers of
lines, which for cells of IPython are new each time. A fingerprint leaves all this out.
"""

from __future__ import annotations

import hashlib
import io
import types
from typing import Any

import cloudpickle

#: What a class's dictionary has in some versions of Python that says nothing about the class:
#: where it is written, and names in the order of a set.
_PLACES = ("__firstlineno__", "__static_attributes__")
#: What a module's dictionary has that says where it is.
_FILES = ("__file__", "__cached__", "__spec__", "__loader__", "__path__")
#: The hexadecimal digits of a fingerprint.
_DIGITS = 32
#: Sets by their ids, with what they contain; None: that is being found out.
_Sets = dict[int, tuple[Any, "list[bytes] | None"]]


def fingerprint(*values: Any) -> str:
    """Return 32 hexadecimal digits that identify values of any types that can be pickled.

    Raises:
        ValueError: a set contains itself.
        Exception: whatever else pickling them raises.
    """
    sets: _Sets = {}
    digest = hashlib.sha256()
    for value in values:
        digest.update(_digest(value, sets))
    return digest.hexdigest()[:_DIGITS]


def _digest(value: Any, sets: _Sets) -> bytes:
    file = io.BytesIO()
    _Normal(file, sets).dump(value)
    return hashlib.sha256(file.getvalue()).digest()


class _Normal(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles the same bytes in each interpreter; nobody can load them.

    Args:
        file: where they are written.
        sets: those that were pickled before, and are being pickled.
    """

    def __init__(self, file: io.BytesIO, sets: _Sets) -> None:
        super().__init__(file, protocol=4)
        self._sets = sets

    def persistent_id(self, value: Any) -> Any:
        """Return what is pickled instead of a value; None: the value itself."""
        kind = type(value)
        if kind is str:
            # A text that is there twice would be a reference the second time, if and only if both
            # are the same object.
            return value.encode("utf-8", "surrogatepass")
        if kind is set or kind is frozenset:
            return (kind.__name__, self._elements(value))
        if kind is types.CodeType:
            return _code(value)
        return None

    def _elements(self, value: Any) -> list[bytes]:
        """Return what is in a set, in an order that is always the same."""
        before = self._sets.get(id(value))
        if before is None:
            # Each set is pickled once, whatever has it; kept here, it keeps its id.
            self._sets[id(value)] = value, None
            found = sorted(_digest(each, self._sets) for each in value)
            before = self._sets[id(value)] = value, found
        if before[1] is None:
            raise ValueError("a set contains itself, perhaps by way of other objects")
        return before[1]

    def reducer_override(self, value: Any) -> Any:
        """As cloudpickle does it, without names of files and without random names."""
        if isinstance(value, types.ModuleType):
            reduced = self.dispatch_table[types.ModuleType](value)
        else:
            reduced = super().reducer_override(value)
        if not isinstance(reduced, tuple):
            return reduced
        make, arguments, *rest = reduced
        if isinstance(value, (types.FunctionType, types.ModuleType)):
            arguments = tuple(map(_without_files, arguments))
        elif isinstance(value, type):
            tracked = cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_CLASS  # noqa: SLF001
            name = tracked.get(value)
            arguments = tuple(
                "" if each is not None and each == name else each for each in arguments
            )
            if rest and isinstance(rest[0], tuple):
                rest[0] = tuple(map(_without_places, rest[0]))
        return (make, arguments, *rest)


def _without_files(argument: Any) -> Any:
    """Return the globals of a function or module without its paths; always a new dictionary."""
    if isinstance(argument, dict):
        return {key: each for key, each in argument.items() if key not in _FILES}
    return argument


def _without_places(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: each for key, each in state.items() if key not in _PLACES}
    return state


def _code(code: types.CodeType) -> tuple[Any, ...]:
    """Return what makes a code object behave as it does."""
    return (
        code.co_name,
        code.co_code,
        getattr(code, "co_exceptiontable", b""),
        tuple(map(_constant, code.co_consts)),
        repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)),
        repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)),
    )


def _constant(constant: Any) -> Any:
    if isinstance(constant, types.CodeType):
        return _code(constant)
    if isinstance(constant, frozenset):
        return ("frozenset", sorted(repr(_constant(each)) for each in constant))
    if isinstance(constant, tuple):
        return tuple(map(_constant, constant))
    # 1, 1.0 and True are equal, and 0.0 and -0.0.
    return (type(constant).__name__, repr(constant))
