"""Reads a settings file: its text becomes a :class:`Layer`, or an error names the place."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from boinc_gahp.config.accounts import DEFAULT_PROJECT
from boinc_gahp.config.places import expand
from boinc_gahp.config.settings import FAILED_JOBS, IGNORED, ProjectSettings, Settings
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import BadRequest, ConfigError
from boinc_gahp.secret import Authenticator, hide_logins
from boinc_gahp.text import nearest, quoted

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from boinc_gahp.config._private import FileText

    Converter = Callable[[object, Path], Any]

LEVELS = ("debug", "info", "warning", "error", "off")

#: How images begin that are files of the submit node; the path follows.
_IMAGE_FILES = ("oci-archive:", "rootfs:")
#: Never quoted in an error.
_SECRET_KEYS = frozenset({"authenticator", "proxy"})


@dataclass(frozen=True, slots=True)
class Layer:
    """The contents of one file, checked and converted, key by key.

    Attributes:
        path: the file.
        projects: its ``[project]`` (as :data:`DEFAULT_PROJECT`) and ``[projects.NAME]`` tables; an
            ``authenticator`` in them is an :class:`Authenticator`, or the path of the file that
            holds it.
        sections: its other tables.
        problems: warnings.
    """

    path: Path
    projects: dict[str, dict[str, Any]] = field(default_factory=dict)
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def sections() -> dict[str, type[Any]]:
    """Return the class of each section, except those of projects."""
    return {
        each.name: type(each.default) for each in fields(Settings) if is_dataclass(each.default)
    }


def read_layer(file: FileText) -> Layer:
    """Return the contents of a settings file: TOML, or the two lines of the C++ program.

    Raises:
        ConfigError: it is not safe, or has something that is not a setting; names file, place and
            remedy.
    """
    problems = file.must_be_trusted()
    layer = _read_two_lines(file) if is_two_lines(file.text) else _read_toml(file)
    if any(
        isinstance(each.get("authenticator"), Authenticator) for each in layer.projects.values()
    ):
        warning = file.must_be_private()
        if warning is not None:
            problems.append(warning)
    return replace(layer, problems=tuple(problems))


def is_two_lines(text: str) -> bool:
    """Tell whether a text is the C++ program's ``config.txt``; TOML never begins with a URL."""
    return text.lstrip().lower().startswith(("http://", "https://"))


def is_image_file(image: str) -> bool:
    """Tell whether a container's image is a file of the submit node."""
    return image.startswith(_IMAGE_FILES)


def parse_authenticator(text: str) -> Authenticator:
    """Return the authenticator from a file: its first word, as HTCondor reads it.

    Raises:
        ValueError: there is none; the message never quotes the text.
    """
    words = text.split(None, 1)
    if not words:
        raise ValueError("an authenticator is expected, but it is empty")
    if not (words[0].isascii() and words[0].isprintable()):
        raise ValueError("an authenticator is expected, but it has characters that are not ASCII")
    return Authenticator(words[0])


def _read_two_lines(file: FileText) -> Layer:
    lines = [line.strip() for line in file.text.splitlines()]
    lines = [line for line in lines if line]
    if len(lines) != 2:
        number = "only that line" if len(lines) == 1 else f"{len(lines)} lines"
        raise ConfigError(
            f"{file.path} begins with an address; such a file must have a second line with the "
            f"authenticator, and nothing else, but it has {number}"
        )
    try:
        url = _url(lines[0], file.path.parent)
        authenticator = parse_authenticator(lines[1])
    except ValueError as error:
        raise ConfigError(f"{file.path}: {error}") from None
    return Layer(file.path, {DEFAULT_PROJECT: {"url": url, "authenticator": authenticator}})


def _read_toml(file: FileText) -> Layer:
    try:
        document = tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file.path} is not TOML: {error}") from None
    classes = sections()
    layer = Layer(file.path)
    for name, table in document.items():
        if name == "projects":
            for project, values in _table(file.path, name, table).items():
                place = f"projects.{project}"
                layer.projects[project] = _read_project(file.path, place, values)
        elif name == "project":
            layer.projects[DEFAULT_PROJECT] = _read_project(file.path, name, table)
        elif name in classes:
            layer.sections[name] = _read_section(file.path, name, table, classes[name])
        else:
            known = ["project", "projects", *classes]
            raise ConfigError(
                f"{file.path}: there is no section [{name}]{_did_you_mean(name, known)}; "
                f"there are {', '.join(known)}"
            )
    return layer


def _read_project(path: Path, section: str, table: object) -> dict[str, Any]:
    values = _read_section(path, section, table, ProjectSettings, extra=("authenticator_file",))
    if "authenticator_file" in values:
        if "authenticator" in values:
            raise ConfigError(
                f"{path}: [{section}] has both authenticator and authenticator_file; keep one"
            )
        values["authenticator"] = values.pop("authenticator_file")
    return values


def _read_section(
    path: Path, section: str, table: object, cls: type, extra: tuple[str, ...] = ()
) -> dict[str, Any]:
    kinds = {each.name: str(each.type) for each in fields(cls)} | dict.fromkeys(extra, "Path")
    values = {}
    for key, value in _table(path, section, table).items():
        if key not in kinds:
            raise ConfigError(
                f"{path}: there is no {key} in [{section}]{_did_you_mean(key, kinds)}; "
                f"there are {', '.join(kinds)}"
            )
        try:
            values[key] = _KINDS[kinds[key].removesuffix(" | None")](value, path.parent)
        except ValueError as error:
            shown = "not right" if key in _SECRET_KEYS else _show(value)
            raise ConfigError(f"{path}: {key} in [{section}] is {shown}; {error}") from None
    return values


def _table(path: Path, name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: {name} is {_show(value)}; a section [{name}] is expected")
    return value


def _show(value: object) -> str:
    """Return a value as it is written in TOML, if that is short."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a section"
    if isinstance(value, list):
        return "a list"
    return quoted(hide_logins(value), 100) if isinstance(value, str) else str(value)


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    meant = nearest(name, known)
    return f" (did you mean {meant}?)" if meant else ""


# From a TOML value to a setting's: (value, directory of the file) -> value, or ValueError.


def _bool(value: object, _base: Path) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false is expected")  # noqa: TRY004  (as of any wrong value)
    return value


def _count(least: int) -> Converter:
    def read(value: object, _base: Path) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ValueError(f"a whole number, {least} or greater, is expected")
        return value

    return read


def _number(unit: str, *, zero: bool) -> Converter:
    def read(value: object, _base: Path) -> float:
        number = -1.0
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            number = float(value)
        if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
            least = "0 or greater" if zero else "greater than 0"
            raise ValueError(f"a number of {unit}, {least}, is expected")
        return number

    return read


def _str(value: object, _base: Path) -> str:
    if not isinstance(value, str):
        raise ValueError("a text in quotes is expected")  # noqa: TRY004  (as of any wrong value)
    return value


def _path(value: object, base: Path) -> Path:
    return expand(_str(value, base), base)


def _url(
    value: object, base: Path, what: str = "the project's address", like: str = "boinc"
) -> ProjectUrl:
    try:
        return ProjectUrl(_str(value, base))
    except BadRequest:
        raise ValueError(f"{what} is expected, like https://{like}.example.edu/test/") from None


def _proxy(value: object, base: Path) -> str:
    text = _str(value, base)
    if not text.startswith(("http://", "https://")):
        raise ValueError("a proxy's address is expected, like http://proxy.example.edu:3128")
    return text


def _app(value: object, base: Path) -> str:
    text = _str(value, base)
    if not text.isprintable() or text.split() != [text]:
        raise ValueError("the name of an app is expected, which is one word")
    return text


def _image(value: object, base: Path) -> str:
    text = _str(value, base).strip()
    if not text:
        raise ValueError("the name of an image is expected, like docker://python:3.12-slim")
    if is_image_file(text):
        kind, _, file = text.partition(":")
        return f"{kind}:{expand(file, base)}"
    return text


def _authenticator(value: object, base: Path) -> Authenticator:
    text = _str(value, base)
    if len(text.split()) > 1:
        raise ValueError("an authenticator is expected, which is one word")
    return parse_authenticator(text)


def _one_of(choices: tuple[str, ...]) -> Converter:
    def read(value: object, base: Path) -> str:
        if _str(value, base) not in choices:
            raise ValueError(f"one of {', '.join(choices)} is expected")
        return str(value)

    return read


def _ignored(value: object, base: Path) -> str:
    text = _str(value, base)
    if not set(text.split()).issubset(IGNORED):
        raise ValueError(f"words with spaces between them are expected: {', '.join(IGNORED)}")
    return text


#: By the type of the setting's field.
_KINDS: dict[str, Converter] = {
    "bool": _bool,
    "Bytes": _count(1),
    "Count": _count(1),
    "CountOrZero": _count(0),
    "Seconds": _number("seconds", zero=False),
    "SecondsOrZero": _number("seconds", zero=True),
    "BytesPerSecondOrZero": _number("bytes per second", zero=True),
    "str": _str,
    "Path": _path,
    "PathText": lambda value, base: str(_path(value, base)),
    "ProjectUrl": _url,
    "ProxyUrl": _proxy,
    "Authenticator": _authenticator,
    "AppName": _app,
    "Image": _image,
    "WebDirectory": lambda value, base: _url(value, base, "the address of a directory", "data"),
    "Level": _one_of(LEVELS),
    "FailedJobs": _one_of(FAILED_JOBS),
    "Ignored": _ignored,
}
