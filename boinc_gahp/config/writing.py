"""Writes a project's address and authenticator into a settings file, and leaves the rest as it is.

The authenticator gets a file of its own, with mode 600. tomlkit changes the settings: it keeps
comments, order and spaces, which people have written for a reason.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from boinc_gahp.config import private
from boinc_gahp.config.accounts import DEFAULT_PROJECT, section
from boinc_gahp.config.places import expand, user_file
from boinc_gahp.config.reading import is_two_lines, parse_authenticator, read_layer
from boinc_gahp.config.urls import ProjectUrl, are_one_project
from boinc_gahp.errors import ConfigError
from boinc_gahp.files import make_private_directory, write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tomlkit import TOMLDocument

    from boinc_gahp.config.settings import Settings
    from boinc_gahp.secret import Authenticator

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_\-]{0,63}")
#: Parts of addresses that do not tell projects apart.
_COMMON = frozenset({"www", "boinc"})


@dataclass(frozen=True, slots=True)
class AccountEntry:
    """Where a project's account is written.

    Attributes:
        settings_file: the file of settings.
        name: the project's name there; "" for ``[project]``.
        url: the address to write.
        key_file: the file for the authenticator.
        present: the account that these files have now, None if there is none.
    """

    settings_file: Path
    name: str
    url: ProjectUrl
    key_file: Path
    present: Authenticator | None

    @property
    def section(self) -> str:
        """The section, as it is written in the file."""
        return section(self.name)

    def write(self, authenticator: Authenticator) -> None:
        """Write the authenticator, then the settings that name its file.

        Each file is written completely or not at all.

        Raises:
            ConfigError: a file cannot be written, or the settings cannot be changed by a program.
        """
        text = _text_of(self.settings_file)
        changed = self._changed(text)
        try:
            if self.settings_file == user_file():
                make_private_directory(self.settings_file.parent)
            write_whole(self.key_file, f"{authenticator.reveal()}\n", 0o600)
            if changed != text:
                # Whoever made it a link wants the link to stay.
                path = self.settings_file.resolve()
                mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
                write_whole(path, changed, mode)
        except OSError as error:
            raise ConfigError(
                f"the account could not be written: {error.filename or self.settings_file}: "
                f"{error.strerror or error}"
            ) from error

    def _changed(self, text: str) -> str:
        wanted = {"url": str(self.url), "authenticator_file": self._key_file_text()}
        # What means the same stays as somebody wrote it.
        values = _read(text).get(self.name, {})
        if "url" in values and ProjectUrl(values["url"]) == self.url:
            wanted["url"] = values["url"]
        named = values.get("authenticator_file")
        if named is not None and expand(named, self.settings_file.parent) == self.key_file:
            wanted["authenticator_file"] = named
        document = tomlkit.parse(text)
        try:
            _set(document, self.name, wanted)
            changed = tomlkit.dumps(document)
            found = _read(changed).get(self.name)
            before = _read(text).get(self.name, {})
        except (TOMLKitError, AttributeError, TypeError, KeyError):
            changed, found, before = text, None, {}
        if found != {key: before[key] for key in before if key != "authenticator"} | wanted:
            lines = "\n".join([self.section, *(f'{key} = "{wanted[key]}"' for key in wanted)])
            raise ConfigError(
                f"{self.settings_file} is written in a way that a program cannot change safely: "
                f"put these lines there yourself, and the account key into {self.key_file}: {lines}"
            )
        return changed

    def _key_file_text(self) -> str:
        """Return the key file's path for the settings: short, since they may be moved together."""
        for base, before in ((self.settings_file.parent, ""), (Path.home(), "~/")):
            if self.key_file.is_relative_to(base):
                return f"{before}{self.key_file.relative_to(base)}"
        return str(self.key_file)


def account_entry(
    settings: Settings, config: str | None, url: ProjectUrl, name: str | None
) -> AccountEntry:
    """Return where the account of a project is to be written.

    Args:
        settings: all settings, as they are now.
        config: the file to change; None: the user's own.
        url: the project's address.
        name: the project's name in the settings; None: the name that it has there, or that of the
            default project if there is none yet, or one that is made of its address.

    Raises:
        ConfigError: the file cannot be read, or the name is another project's.
    """
    path = user_file() if config is None else expand(config, Path()).absolute()
    if path is None:
        raise ConfigError("you have no home directory: name a settings file with --config FILE")
    text = _text_of(path)
    own = _read(text)
    mine = {each: str(values["url"]) for each, values in own.items() if "url" in values}
    known = mine | {each: project.url for each, project in settings.projects.items()}
    if settings.project is not None:
        known[DEFAULT_PROJECT] = settings.project.url
    # The file's own sections come first: a file that is read later may hide them now.
    name = _name(mine, known, url, name)
    key_file = _key_file(path, own, name)
    return AccountEntry(path, name, url, key_file, _present(path, own.get(name, {}), key_file))


def _name(
    mine: Mapping[str, str], known: Mapping[str, str], url: ProjectUrl, given: str | None
) -> str:
    wanted = given or ""
    if given is None:
        for name, other in (*mine.items(), *known.items()):
            if are_one_project(other, url):
                return name
        if DEFAULT_PROJECT not in known:
            return DEFAULT_PROJECT
        path = url.split("/", 3)[3].strip("/").rpartition("/")[2]
        labels = [each for each in url.host.partition(":")[0].split(".") if each not in _COMMON]
        wanted = re.sub(r"[^A-Za-z0-9_\-]", "-", path or "".join(labels[:1]) or "project")
    elif not _NAME.fullmatch(wanted):
        raise ConfigError(
            f"a project cannot be named {wanted!r}: expected letters, digits, _ and -"
        )
    taken = known.get(wanted)
    if taken is not None and not are_one_project(taken, url):
        raise ConfigError(
            f"{section(wanted)} of the settings is the project {taken}: choose another name for "
            f"{url} with --name NAME"
        )
    return wanted


def _key_file(path: Path, own: Mapping[str, Mapping[str, Any]], name: str) -> Path:
    files = {
        each: expand(str(values["authenticator_file"]), path.parent)
        for each, values in own.items()
        if "authenticator_file" in values
    }
    found = files.pop(name, None)
    if found is None:
        found = path.parent / (f"authenticator-{name}" if name else "authenticator")
    while found in files.values():
        # Two projects must not share a file: each would get the other's authenticator.
        found = found.with_name(f"{found.name}-{name or 'default'}")
    return found


def _present(path: Path, values: Mapping[str, Any], key_file: Path) -> Authenticator | None:
    text = values.get("authenticator")
    try:
        return parse_authenticator(private.read(key_file).text if text is None else str(text))
    except (OSError, ValueError):
        return None
    except ConfigError as error:
        raise ConfigError(f"{error}; it is named in {path}") from None


def _text_of(path: Path) -> str:
    """Return the text of a settings file that can be read; "" if it is missing."""
    try:
        file = private.read(path)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    if path == user_file():
        file.must_be_ours()
    if is_two_lines(file.text):
        raise ConfigError(
            f"{path} has an address and an authenticator in two lines, without names: another "
            "project cannot be added to it; use another file (--config FILE)"
        )
    read_layer(file)
    return file.text


def _read(text: str) -> dict[str, dict[str, Any]]:
    """Return the sections of projects in a text, as plain values, by name."""
    return _sections(tomlkit.parse(text).unwrap())


def _sections(document: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(document.get("projects", {}))
    if "project" in document:
        found[DEFAULT_PROJECT] = document["project"]
    return found


def _set(document: TOMLDocument, name: str, wanted: Mapping[str, str]) -> None:
    """Change a project's section, or add one at the end."""
    if name in _sections(document):
        table: Any = document["projects"][name] if name else document["project"]
        table.pop("authenticator", None)
        table.update({key: value for key, value in wanted.items() if table.get(key) != value})
        return
    text = tomlkit.dumps(document)
    if text and not text.endswith("\n\n"):
        document.add(tomlkit.nl())
    table = tomlkit.table()
    table.update(wanted)
    if not name:
        document.append("project", table)
    elif "projects" in document:
        document["projects"].append(name, table)
    else:
        projects = tomlkit.table(is_super_table=True)
        projects.append(name, table)
        document.append("projects", projects)
