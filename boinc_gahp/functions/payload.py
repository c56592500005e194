"""What is sent for a call: the function, its arguments, the runner and cloudpickle."""

from __future__ import annotations

import base64
import functools
import inspect
import io
import sys
import sysconfig
import zipfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boinc_gahp.errors import BadRequest
from boinc_gahp.extras import need_extra
from boinc_gahp.functions.runner import INLINE, PACKAGES
from boinc_gahp.text import quoted, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

#: This interpreter's version, as the names of images have it.
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
#: The runner's name in a job.
PROGRAM = "boinc_gahp_call.py"
#: The most bytes of pickled arguments that are on the command line; more are a file.
MOST_INLINE = 32_000
#: The date of all files in an archive, so that its bytes are always the same.
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class FunctionPayload:
    """A pickled function.

    Attributes:
        name: what people call it.
        fingerprint: of its code, and of all that is sent with it.
        content: the pickle.
        modules: modules whose contents are sent, too, where they are used.
    """

    name: str
    fingerprint: str
    content: bytes
    modules: tuple[ModuleType, ...] = ()

    @property
    def file_name(self) -> str:
        """Its open name in a job."""
        return f"function-{self.fingerprint}.pkl"


@dataclass(frozen=True, slots=True)
class CallPayload:
    """A call of a function.

    Attributes:
        key: identifies the function and its arguments.
        content: the pickled arguments.
    """

    key: str
    content: bytes

    @property
    def file_name(self) -> str:
        """The open name of the arguments, if they are a file."""
        return f"arguments-{self.key}.pkl"

    @property
    def is_file(self) -> bool:
        """Whether the arguments are a file, and not on the command line."""
        return len(self.content) > MOST_INLINE


def pack_function(function: Any, modules: Sequence[ModuleType] = ()) -> FunctionPayload:
    """Return a function as it is sent.

    The module that it is defined in goes with it, unless that is installed.

    Args:
        function: anything that can be called.
        modules: other modules of the user that the image lacks.

    Raises:
        BadRequest: it cannot be called or pickled.
        MissingExtra: cloudpickle is not installed.
    """
    if not callable(function):
        raise BadRequest(
            f"function is of the type {type(function).__name__}: expected a function, or something "
            "else that can be called"
        )
    inner = _inner(function)
    name = str(getattr(inner, "__name__", type(inner).__name__))
    own = _own_module(inner)
    sent = (*modules, *(() if own is None or own.__name__ == "__main__" else (own,)))
    source = {} if own is None else _source(inner)
    with _by_value(sent):
        mark, content = _pickled(f"the function {name}", function, (function, source))
    return FunctionPayload(name, mark, content, sent)


def pack_call(
    function: FunctionPayload, args: Sequence[Any], kwargs: dict[str, Any] | None = None
) -> CallPayload:
    """Return the arguments of a call as they are sent.

    Raises:
        BadRequest: they cannot be pickled.
        MissingExtra: cloudpickle is not installed.
    """
    both = (tuple(args), dict(kwargs or {}))
    what = f"the arguments of {function.name}"
    with _by_value(function.modules):
        key, content = _pickled(what, (function.fingerprint, both), both)
    return CallPayload(key, content)


def words(function: FunctionPayload, call: CallPayload) -> tuple[str, str, str, str]:
    """Return the runner's arguments for a call."""
    inline = INLINE + base64.b64encode(call.content).decode()
    arguments = call.file_name if call.is_file else inline
    return (call.key, PYTHON, function.file_name, arguments)


def shared_files() -> dict[str, bytes]:
    """Return the files that all functions need, by their open names: the runner and cloudpickle.

    Raises:
        MissingExtra: cloudpickle is not installed.
    """
    runner = Path(__file__).with_name("runner.py").read_bytes()
    return {PROGRAM: runner, PACKAGES: _packages()}


def _packages() -> bytes:
    """Return cloudpickle as a zip archive with its license; the same bytes each time."""
    place = Path(str(_cloudpickle().__file__)).parent
    contents = {f"cloudpickle/{path.name}": path.read_bytes() for path in place.glob("*.py")}
    with suppress(metadata.PackageNotFoundError):
        for path in metadata.files("cloudpickle") or ():
            if "LICENSE" in path.name.upper():
                contents["cloudpickle/LICENSE"] = path.read_binary()
    file = io.BytesIO()
    # Without compression: other versions of zlib would write other bytes.
    with zipfile.ZipFile(file, "w") as archive:
        for name in sorted(contents):
            archive.writestr(zipfile.ZipInfo(name, _DATE), contents[name])
    return file.getvalue()


def _cloudpickle() -> Any:
    need_extra("functions", "sending a function", "cloudpickle")
    return import_module("cloudpickle")


def _pickled(what: str, marked: Any, value: Any) -> tuple[str, bytes]:
    """Return the fingerprint of ``marked`` and the pickle of ``value``."""
    cloudpickle = _cloudpickle()
    from boinc_gahp.functions._fingerprint import fingerprint  # noqa: PLC0415  (needs cloudpickle)

    try:
        return fingerprint(marked), cloudpickle.dumps(value)
    except Exception as error:
        reason = shorten(f"{type(error).__name__}: {error}")
        raise BadRequest(
            f"{what} cannot be sent: {reason}; files, connections, locks and the like "
            "cannot travel: make them in the function, or send files as inputs"
        ) from error


def _inner(function: Any) -> Any:
    """Return the function that a partial one calls."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _own_module(function: Any) -> ModuleType | None:
    """Return the module of a function if it is the user's own, and not installed.

    cloudpickle sends what is defined in ``__main__`` and in notebooks; of other modules it only
    sends their names.
    """
    kind = function if hasattr(function, "__qualname__") else type(function)
    module = sys.modules.get(getattr(kind, "__module__", None) or "")
    if module is None or module.__name__ == "__main__":
        return module
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    places = map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))
    is_installed = any(path.is_relative_to(Path(each).resolve()) for each in places)
    return None if is_installed else module


@contextmanager
def _by_value(modules: Sequence[ModuleType]) -> Iterator[None]:
    """Let cloudpickle send what modules define, not only its names."""
    cloudpickle = _cloudpickle()
    registered: list[ModuleType] = []
    known = cloudpickle.list_registry_pickle_by_value()
    try:
        for module in modules:
            name = getattr(module, "__name__", None)
            if name is None or sys.modules.get(name) is not module:
                raise BadRequest(
                    f"modules: expected modules that are imported, found {quoted(repr(module))}"
                )
            if name not in known and module not in registered:
                cloudpickle.register_pickle_by_value(module)
                registered.append(module)
        yield
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)


def _source(function: Any) -> dict[str, list[str]]:
    """Return the lines of a function, for tracebacks there: by the name of its file."""
    try:
        lines, first = inspect.getsourcelines(function)
        name = inspect.unwrap(function).__code__.co_filename
    except (OSError, TypeError, AttributeError, ValueError):
        return {}
    # The other lines of the file stay here.
    return {name: ["\n"] * (first - 1) + lines} if first else {name: lines}
