"""What a person at a Python prompt sees: short tracebacks, and names that Tab offers.

The errors of the Python API say what is wrong and what to do. The frames between the line that was
typed and the one that raised them, and the exceptions of other libraries that they come from, tell
a user nothing, and fill a screen. The log has them, at the level DEBUG.
"""

from __future__ import annotations

import functools
import logging
import sys
from concurrent.futures import CancelledError
from types import FunctionType, GeneratorType, TracebackType
from typing import TYPE_CHECKING, Any

from boinc_gahp.errors import GahpError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")
    T = TypeVar("T")

log = logging.getLogger("boinc_gahp")

#: Errors that say everything. Others are bugs, or come from functions of the caller's.
_TELLING = (GahpError, TimeoutError, CancelledError)
_PRIVATE = ":meta private:"
#: The attribute of an error that IPython and Jupyter call for the lines of a traceback.
_IPYTHONS = "_render_traceback_"
#: What Python itself calls.
_CALLED = {"__call__", "__init__", "__len__", "__iter__", "__getitem__", "__contains__"}


def concise(cls: type[T]) -> type[T]:
    """Shorten the tracebacks of all public methods and properties of a class."""
    for name, value in list(vars(cls).items()):
        if name in _CALLED or not name.startswith("_"):
            if isinstance(value, FunctionType):
                setattr(cls, name, concise_function(value))
            elif isinstance(value, classmethod):
                setattr(cls, name, classmethod(concise_function(value.__func__)))
            elif isinstance(value, property) and value.fget is not None:
                setattr(cls, name, value.getter(concise_function(value.fget)))
    return cls


def concise_function(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with shorter tracebacks, also of the steps of a generator."""

    @functools.wraps(function)
    def called(*args: P.args, **options: P.kwargs) -> Any:
        outside = sys.exc_info()[1]
        try:
            result = function(*args, **options)
        except _TELLING as error:
            raise _shortened(error, outside)  # noqa: B904  (it is the same error)
        return _steps(result) if isinstance(result, GeneratorType) else result

    return called


def offered(thing: object, names: Iterable[str], *internal: str) -> list[str]:
    """Return the names of an object for ``dir()``, without those that are for this program.

    These are ``internal``, and those whose docstring has ``:meta private:``.
    """
    hidden = {name for name in names if _PRIVATE in str(getattr(type(thing), name, None).__doc__)}
    return sorted({*names} - hidden - {*internal})


def _steps(iterator: Iterator[Any]) -> Iterator[Any]:
    outside = sys.exc_info()[1]
    try:
        yield from iterator
    except _TELLING as error:
        raise _shortened(error, outside)  # noqa: B904  (it is the same error)


def _shortened(error: BaseException, outside: BaseException | None) -> BaseException:
    """Return the error without frames; ``outside``: what the caller was handling already.

    Where the error comes from is then its ``__context__``, for debuggers.
    """
    log.debug("%s", error, exc_info=error)
    inner, error.__cause__ = error.__cause__ or error.__context__, None
    error.__context__ = inner if outside is None else outside
    error.__suppress_context__ = outside is None
    if "IPython" in sys.modules:
        setattr(error, _IPYTHONS, functools.partial(_rendered, error))
    return error.with_traceback(None)


def _rendered(error: BaseException, *_: object) -> list[str]:
    """Return the lines that IPython shows for an error, without this module's frames and code.

    IPython can hide a frame (``__tracebackhide__``), but never the last one.
    """
    places, place = [], error.__traceback__
    while place is not None:
        if place.tb_frame.f_code.co_filename != __file__:
            places.append(place)
        place = place.tb_next
    for each in reversed(places):
        place = TracebackType(place, each.tb_frame, each.tb_lasti, each.tb_lineno)
    shown: Any = sys.modules["IPython"].get_ipython()
    lines = shown.InteractiveTB.structured_traceback(type(error), error, place, tb_offset=1)
    return list(lines)
