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
#: The hexadecimal digits of a fingerprint.
_DIGITS = 32


def fingerprint(*values: Any) -> str:
    """Return 32 hexadecimal digits that identify values of any types that can be pickled.

    Raises:
        Exception: whatever pickling them raises.
    """
    digest = hashlib.sha256()
    for value in values:
        digest.update(_content(value))
        digest.update(b"\0")
    return digest.hexdigest()[:_DIGITS]


def _content(value: Any) -> bytes:
    file = io.BytesIO()
    _Normal(file, protocol=4).dump(value)
    return file.getvalue()


class _Normal(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles the same bytes in each interpreter; nobody can load them."""

    def persistent_id(self, value: Any) -> Any:
        """Return what is pickled instead of a value; None: the value itself."""
        kind = type(value)
        if kind is str:
            # A text that is there twice would be a reference the second time, if and only if both
            # are the same object.
            return value.encode("utf-8", "surrogatepass")
        if kind is set or kind is frozenset:
            return (kind.__name__, sorted(_content(each) for each in value))
        if kind is types.CodeType:
            return _code(value)
        return None

    def reducer_override(self, value: Any) -> Any:
        """As cloudpickle does it, without names of files and without random names."""
        reduced = super().reducer_override(value)
        if not isinstance(reduced, tuple):
            return reduced
        make, arguments, *rest = reduced
        if isinstance(value, types.FunctionType):
            arguments = tuple(map(_without_file, arguments))
        elif isinstance(value, type):
            tracked = cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_CLASS  # noqa: SLF001
            name = tracked.get(value)
            arguments = tuple(
                "" if each is not None and each == name else each for each in arguments
            )
            if rest and isinstance(rest[0], tuple):
                rest[0] = tuple(map(_without_places, rest[0]))
        return (make, arguments, *rest)


def _without_file(argument: Any) -> Any:
    """Return the globals of a function without the path of its module; always a new dictionary."""
    if isinstance(argument, dict):
        return {key: each for key, each in argument.items() if key != "__file__"}
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
