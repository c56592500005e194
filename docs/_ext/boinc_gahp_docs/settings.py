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
        "The file that holds the authenticator and nothing else, instead of ``authenticator``. "
        "Nobody but its owner may be able to read it (``chmod 600``).",
    )
}
_TYPES = {
    "bool": "true or false",
    "Bytes": "number of bytes, 1 or greater",
    "Count": "whole number, 1 or greater",
    "CountOrZero": "whole number, 0 or greater",
    "Seconds": "number of seconds, greater than 0",
    "SecondsOrZero": "number of seconds, 0 or greater",
    "BytesPerSecondOrZero": "number of bytes per second, 0 or greater",
    "Path": "path",
    "PathText": "path",
    "ProjectUrl": "web address",
    "ProxyUrl": "web address",
    "Level": "one of " + ", ".join(_reading.LEVELS),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of ``boinc_gahp.toml``.

    Attributes:
        section: as it stands between brackets.
        key: its name.
        type: what its value is, in words.
        default: as in TOML; None: there is none.
        meaning: reStructuredText.
    """

    section: str
    key: str
    type: str
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
    type_ = _TYPES.get(kind.removesuffix(" | None"), "text")
    return Setting(section, key, type_, default, rst.without_sources(comment))


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
    body = rst.sentence(setting.meaning)
    if targets:
        head = [f".. confval:: [{setting.section}] {setting.key}"]
        head.append(f"   :type: {setting.type}")
        if setting.default is not None:
            head.append(f"   :default: ``{setting.default}``")
        return "\n".join([*head, "", rst.indented(body), ""])
    default = "" if setting.default is None else f"; default ``{setting.default}``"
    return f"``{setting.key}``\n   *{setting.type}*\\ {default}\n\n{rst.indented(body)}\n"
