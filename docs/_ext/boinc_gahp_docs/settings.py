"""The settings: the fields of ``boinc_gahp.config.settings``, with the comments at them."""

from __future__ import annotations

import dataclasses
import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boinc_gahp.config import _reading, settings
from boinc_gahp_docs import rst

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Keys that are no field: the reader makes the field ``authenticator`` of it.
_EXTRA = {
    "authenticator_file": (
        "Path",
        "The file that holds the authenticator as its first word, instead of ``authenticator``. "
        "Nobody but its owner may be able to read it (``chmod 600``).",
    )
}
_TYPES = {
    "bool": "true or false",
    "int": "whole number",
    "float": "number",
    "str": "text",
    "Path": "path",
    "Authenticator": "text",
    "ProjectUrl": "web address",
}
#: Where the reader knows better than the field's type.
_TYPES_BY_KEY = {
    "proxy": "web address",
    "ca_bundle": "path",
    "file": "path",
    "level": "one of " + ", ".join(_reading.LEVELS),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of ``boinc_gahp.toml``.

    Attributes:
        section: as it stands between brackets.
        key: its name.
        type: what its value is, in words.
        unit: seconds, bytes, or empty.
        default: as in TOML; None: there is none.
        meaning: reStructuredText.
    """

    section: str
    key: str
    type: str
    unit: str
    default: str | None
    meaning: str


def sections() -> dict[str, list[Setting]]:
    """Return the settings of each section, in the order of the classes."""
    return {name: list(_settings(name, cls)) for name, cls in _classes().items()}


def _classes() -> dict[str, type[Any]]:
    return {"project": settings.ProjectSettings, **_reading.sections()}


def _settings(section: str, cls: type[Any]) -> Iterator[Setting]:
    comments = field_comments(cls)
    for field in dataclasses.fields(cls):
        yield _setting(section, field.name, str(field.type), _default(field), comments[field.name])
        if field.name == "authenticator":
            for key, (kind, comment) in _EXTRA.items():
                yield _setting(section, key, kind, None, comment)


def _setting(section: str, key: str, kind: str, default: str | None, comment: str) -> Setting:
    kind = kind.removesuffix(" | None")
    unit = ""
    if kind == "float":
        unit = "seconds"
    elif kind == "int" and "bytes" in key:
        unit = "bytes"
    type_ = _TYPES_BY_KEY.get(key) or _TYPES[kind]
    if kind in {"int", "float"}:
        type_ += f", {_least(key, kind)}"
    return Setting(section, key, type_, unit, default, rst.without_sources(comment))


def _least(key: str, kind: str) -> str:
    zero = _reading._COUNTS_WITH_ZERO if kind == "int" else _reading._TIMES_WITH_ZERO  # noqa: SLF001
    if key in zero:
        return "0 or greater"
    return "1 or greater" if kind == "int" else "greater than 0"


def _default(field: dataclasses.Field[Any]) -> str | None:
    value = field.default
    if value is dataclasses.MISSING or value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:_}"


def field_comments(cls: type[Any]) -> dict[str, str]:
    """Return the ``#:`` comment before each field of a dataclass.

    Raises:
        LookupError: a field has none.
    """
    found: dict[str, str] = {}
    comment: list[str] = []
    for line in inspect.getsource(cls).splitlines():
        text = line.strip()
        if text.startswith("#:"):
            comment.append(text.removeprefix("#:").strip())
            continue
        field = re.match(r"(\w+): ", text)
        if field and comment:
            found[field[1]] = " ".join(comment)
        comment = []
    missing = {field.name for field in dataclasses.fields(cls)} - set(found)
    if missing:
        raise LookupError(f"{cls.__name__}: no comment (#:) at {', '.join(sorted(missing))}")
    return found


def title(section: str) -> str:
    """Return how a section's table is written."""
    return "[project] and [projects.NAME]" if section == "project" else f"[{section}]"


def render(level: int, *, targets: bool) -> str:
    """Return a heading for each section with its settings beneath.

    Args:
        level: of the headings.
        targets: whether there are labels, and settings that other pages can refer to.
    """
    parts = []
    classes = _classes()
    for section, members in sections().items():
        if targets:
            parts.append(f".. _settings-{section}:\n")
        parts.append(rst.heading(title(section), level))
        about = about_section(classes[section])
        if about:
            parts.append(f"{about}\n")
        parts += [_render(setting, targets=targets) for setting in members]
    return "\n".join(parts)


def about_section(cls: type[Any]) -> str:
    """Return what a class's docstring says beside the section's name."""
    text = inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0]
    text = rst.without_sources(re.sub(r"^``\[\w+\]``(?: or ``\[[\w.]+\]``)?[:.]?\s*", "", text))
    return rst.sentence(text)


def _render(setting: Setting, *, targets: bool) -> str:
    unit = f" ({setting.unit})" if setting.unit else ""
    body = rst.sentence(setting.meaning)
    if targets:
        head = [f".. confval:: [{setting.section}] {setting.key}"]
        head.append(f"   :type: {setting.type}{unit}")
        if setting.default is not None:
            head.append(f"   :default: ``{setting.default}``")
        return "\n".join([*head, "", rst.indented(body), ""])
    default = "" if setting.default is None else f"; default ``{setting.default}``"
    return f"``{setting.key}``\n   *{setting.type}{unit}*\\ {default}\n\n{rst.indented(body)}\n"
