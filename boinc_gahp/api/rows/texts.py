"""Arguments, input files and names as texts: on command lines, and in files with one row per job.

An input file is ``PATH``, ``file:PATH``, ``staged:PHYSICAL_NAME``, ``inline:TEXT`` or
``remote:URL,NBYTES,MD5``. Texts for jobs that differ in some values have placeholders: ``{seed}``
stands for a value; ``{seed:4}`` is a whole number of at least four digits, ``{{`` and ``}}`` are
braces. Values are filled in once: braces in a value are left as they are. Arguments are split into
words before, so a value with spaces stays one word.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.errors import BadRequest
from boinc_gahp.secret import hide_logins
from boinc_gahp.submit.types import InlineFile, LocalFile, RemoteFile, StagedFile
from boinc_gahp.text import did_you_mean, nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from boinc_gahp.submit.types import File, Input

#: What every job has: its number, from 0, and the name of its batch.
INDEX, BATCH = "index", "batch"

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_WIDTH = re.compile(r"(.*):0?([0-9]{1,2})", re.DOTALL)
_WHOLE = re.compile(r"[+-]?[0-9]+")
#: Characters that a batch's name may have, but not a job's (``web-rpcs.rst``, "Job names").
_NOT_IN_JOB_NAMES = re.compile(r"[\s/]")


class Pattern:
    """A text with placeholders.

    Args:
        text: the text.

    Attributes:
        given: what stands in the braces of its placeholders, in order.

    Raises:
        BadRequest: a brace stands alone.
    """

    def __init__(self, text: str) -> None:
        self.given: list[str] = []
        #: Literal texts, with the placeholders between them.
        self._literals = [""]
        end = 0
        for part in _PART.finditer(text):
            self._literals[-1] += text[end : part.start()]
            end = part.end()
            if part[0] in {"{{", "}}"}:
                self._literals[-1] += part[0][0]
            elif part[1] is None:
                raise BadRequest(f"a {part[0]} stands alone: write {part[0] * 2} for a brace")
            else:
                self.given.append(part[1])
                self._literals.append("")
        self._literals[-1] += text[end:]

    def used(self, names: Collection[str], taken: Collection[str] = ()) -> set[str]:
        """Return those of ``names`` that the placeholders stand for.

        Args:
            names: those of the values that there are.
            taken: columns that have another use.

        Raises:
            BadRequest: a placeholder stands for none of the names; lists them.
        """
        used = set()
        for given in self.given:
            name = _name(given, names)
            if name is None and _name(given, taken):
                raise BadRequest(
                    f"{{{given}}} is not a placeholder: boinc_gahp uses this column itself. If it "
                    f"is only a parameter, say --as-data {given} (in Python as_data=[{given!r}]); "
                    "otherwise give the value another column, too"
                )
            if name is None:
                shown = ", ".join(f"{{{each}}}" for each in names)
                meant = did_you_mean(given, names, show=lambda name: f"{{{name}}}")
                raise BadRequest(
                    f"{{{given}}} is not a placeholder; there are {shown}, and {{{{ for a brace"
                    f"{meant}"
                )
            used.add(name)
        return used

    def fill(self, values: Mapping[str, str | None]) -> str:
        """Return the text with its placeholders filled in.

        Args:
            values: by name, all that :meth:`used` was called with; None: there is none.

        Raises:
            BadRequest: a value is missing, or is not a whole number where digits are asked for.
        """
        return "".join(self.around(None, values))

    def around(self, name: str | None, values: Mapping[str, str | None]) -> tuple[str, ...]:
        """Return what stands before, between and after the placeholders ``{name}``, filled in.

        Raises:
            BadRequest: see :meth:`fill`.
        """
        parts = [self._literals[0]]
        for given, literal in zip(self.given, self._literals[1:], strict=True):
            if given == name:
                parts.append(literal)
            else:
                parts[-1] += _value(given, values) + literal
        return tuple(parts)


def _name(given: str, names: Collection[str]) -> str | None:
    if given in names:
        return given
    found = _WIDTH.fullmatch(given)
    return found[1] if found and found[1] in names else None


def _value(given: str, values: Mapping[str, str | None]) -> str:
    value = values.get(given)
    if value is not None:
        return value
    name = _name(given, values)
    value = None if name is None else values[name]
    if value is None:
        raise BadRequest(f"{{{given}}} has no value in this row: the cell is empty or missing")
    if not _WHOLE.fullmatch(value):
        raise BadRequest(f"{{{given}}} is for whole numbers, and {name} is {value!r}")
    return value.zfill(int(given.rpartition(":")[2]))


class NameInBatch(str):
    """A job's name with a part that is known when the job is submitted: the batch's name.

    Args:
        parts: what stands before, between and after the batch's name.
    """

    __slots__ = ("_parts",)
    _parts: tuple[str, ...]

    def __new__(cls, *parts: str) -> NameInBatch:
        """Return a name that reads ``{batch}_7``."""
        made = super().__new__(cls, f"{{{BATCH}}}".join(parts))
        made._parts = parts
        return made

    def __reduce__(self) -> tuple[type[NameInBatch], tuple[str, ...]]:
        return NameInBatch, self._parts

    def within(self, batch_name: str) -> str:
        """Return the job's name in this batch."""
        return prefix_of(batch_name).join(self._parts)


def prefix_of(batch_name: str) -> str:
    """Return a batch's name as jobs' names have it: without spaces and slashes."""
    return _NOT_IN_JOB_NAMES.sub("_", batch_name)


class Patterns:
    """The arguments, inputs and names of jobs, with placeholders.

    Args:
        args: words, or one string that is split as a shell would; None: no arguments.
        inputs: files by open names: texts that :func:`read_file` reads, which may have
            placeholders, or others, which are used as they are.
        name: None: the jobs are named when they are submitted.
        batch: the batch's name; None: it is known when the jobs are submitted, so only ``name`` may
            have ``{batch}``.
        as_data: columns of a table that are parameters, though boinc_gahp would use them.

    Attributes:
        has_args: whether ``args`` was given.
        seen: the names that :meth:`used` has returned so far.
        settings: the columns that set a property of the jobs, and which.

    Raises:
        BadRequest: a brace stands alone, or the arguments cannot be split.
    """

    def __init__(
        self,
        args: Sequence[object] | str | None = None,
        inputs: Mapping[str, File] | None = None,
        name: str | None = None,
        batch: str | None = None,
        as_data: Collection[str] = (),
    ) -> None:
        words = split_args(args) if isinstance(args, str) else args or ()
        self.has_args = args is not None
        self._args = [_word_or_pattern(each) for each in words]
        self._inputs = {
            open_name: _file_or_pattern(file) for open_name, file in (inputs or {}).items()
        }
        self._name = None if name is None else Pattern(name)
        self.batch = batch
        self.as_data = as_data
        self.seen: set[str] = set()
        self.settings: dict[str, str] = {}

    def _patterns(self) -> Iterator[Pattern]:
        for each in (*self._args, *self._inputs.values()):
            if isinstance(each, Pattern):
                yield each
        if self._name is not None:
            yield self._name

    def used(self, names: Collection[str], taken: Collection[str] = ()) -> set[str]:
        """Return those of ``names`` for which there is a placeholder; see :meth:`Pattern.used`.

        Raises:
            BadRequest: there is one for something else, or ``{batch}`` where it is not known.
        """
        used: set[str] = set()
        for each in self._patterns():
            found = each.used(names, taken)
            if BATCH in found and self.batch is None and each is not self._name:
                raise BadRequest(
                    f"{{{BATCH}}} is only known when the jobs are submitted: only name may have it"
                )
            used |= found
        self.seen |= used
        return used

    def args(self, values: Mapping[str, str | None]) -> tuple[object, ...]:
        """Return a job's arguments; for errors see :meth:`Pattern.fill`."""
        return tuple(
            [each.fill(values) if isinstance(each, Pattern) else each for each in self._args]
        )

    def inputs(
        self, values: Mapping[str, str | None], of_rows: Callable[[str], File] | None = None
    ) -> dict[str, File]:
        """Return a job's inputs.

        Args:
            values: see :meth:`Pattern.fill`.
            of_rows: reads a text that has a value of the row.

        Raises:
            BadRequest: a value is missing, or a text does not describe a file.
        """
        inputs: dict[str, File] = {}
        for open_name, file in self._inputs.items():
            if isinstance(file, Pattern):
                text = file.fill(values)
                is_of_row = of_rows is not None and file.used(values) - {INDEX, BATCH}
                inputs[open_name] = of_rows(text) if of_rows and is_of_row else read_file(text)
            else:
                inputs[open_name] = file
        return inputs

    def name(self, values: Mapping[str, str | None]) -> str | None:
        """Return a job's name; None: it has none yet."""
        if self._name is None:
            return None
        if self.batch is not None:
            return self._name.fill({**values, BATCH: prefix_of(self.batch)})
        if BATCH not in self._name.given:
            return self._name.fill(values)
        return NameInBatch(*self._name.around(BATCH, values))


def _word_or_pattern(word: object) -> object:
    if not isinstance(word, str):
        return word
    pattern = Pattern(word)
    return pattern if pattern.given else pattern.fill({})


def _file_or_pattern(file: File) -> File | Pattern:
    if not isinstance(file, str):
        return file
    pattern = Pattern(file)
    return pattern if pattern.given else read_file(pattern.fill({}))


#: What may stand before a colon.
KINDS = ("file", "staged", "inline", "remote", "http", "https")

_PREFIX = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_MD5 = re.compile(r"[0-9A-Fa-f]{32}")
_NUMBER = re.compile(r"[0-9]{1,18}")
#: Characters that a shell treats specially.
_NOT_PLAIN = re.compile(r"['\"\\]")
_WORD = re.compile(r"[^ \t\r\n]+")
#: What Path() leaves out of a path, and the beginning of an absolute one.
_UNTIDY = re.compile(r"(?:^|/)\.?(?:/|$)")
#: A word this similar is probably what was meant.
_ALIKE = 0.75


def read_file(text: str) -> Input:
    """Return the input file that a text describes; does not look at the file.

    Raises:
        BadRequest: the text does not describe a file.
    """
    if not text:
        raise BadRequest(f"an input file is empty: expected {_expected()}")
    found = _PREFIX.fullmatch(text)
    kind, rest = (found[1].lower(), found[2]) if found else ("", "")
    if kind in {"http", "https"}:
        raise BadRequest(
            f"input file {quoted(hide_logins(text))}: a project needs its size and MD5, too: write "
            "remote:URL,NBYTES,MD5 (wc -c and md5sum tell these)"
        )
    if kind == "remote":
        return _remote(text, rest)
    if kind in {"file", "staged", "inline"}:
        if not rest:
            raise BadRequest(
                f"input file {quoted(text)} has nothing after the colon: expected {_expected()}; "
                "an empty file has to be one on disk"
            )
        if kind == "inline":
            return InlineFile(rest)
        return LocalFile(rest) if kind == "file" else StagedFile(rest)
    meant = nearest(kind, KINDS, alike=_ALIKE)
    if meant or (kind and rest.startswith("//")):  # it was probably not meant as a path
        instead = f"; did you mean {meant}:?" if meant else ""
        raise BadRequest(
            f"input file {quoted(text)}: {kind}: is not a known kind of file; expected "
            f"{_expected()}{instead}"
        )
    return LocalFile(text)


def path_of(file: LocalFile | str | os.PathLike[str]) -> str:
    """Return a local file's path as a string."""
    return os.fspath(file.path if isinstance(file, LocalFile) else file)


def template_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a template file; raises BadRequest if it cannot be read."""
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadRequest(
            f"template {os.fspath(path)!r} cannot be read: {reason}; check its path"
        ) from error


def relative_to(directory: str | os.PathLike[str], file: File) -> File:
    """Return ``file``; a local one with a relative path becomes relative to ``directory``."""
    if not isinstance(file, (LocalFile, str, os.PathLike)):
        return file
    path = path_of(file)
    if isinstance(directory, Path) and directory.name and not _UNTIDY.search(path):
        return LocalFile(f"{directory}/{path}")  # the same as below, ten times as fast
    return LocalFile(str(Path(directory, path)))


def read_named(text: str) -> tuple[str, Input]:
    """Return the open name and the file of a text ``NAME=FILE``.

    Raises:
        BadRequest: the text is not of that form.
    """
    name, file = split_named(text)
    return name, read_file(file)


def split_named(text: str) -> tuple[str, str]:
    """Return the open name and the text of the file of a text ``NAME=FILE``; raises BadRequest."""
    name, equals, file = text.partition("=")
    if not equals or not name:
        raise BadRequest(
            f"input {quoted(text)}: expected NAME=FILE, where NAME is what the app calls the file"
        )
    return name, file


def split_args(text: str) -> tuple[str, ...]:
    """Return the words of a command line, split as a shell would.

    Raises:
        BadRequest: a quote is not closed, or the text ends with a backslash.
    """
    if _NOT_PLAIN.search(text) is None:
        return tuple(_WORD.findall(text))  # same result as shlex, thirty times as fast
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        reason = str(error).lower().replace("no closing quotation", "a quote is not closed")
        reason = reason.replace("no escaped character", "there is nothing after its last backslash")
        raise BadRequest(
            f"arguments {quoted(text)} cannot be split as a shell would: {reason}"
        ) from error


def _remote(text: str, rest: str) -> RemoteFile:
    url, nbytes, md5 = rest.rsplit(",", 2) if rest.count(",") >= 2 else ("", "", "")
    if not _NUMBER.fullmatch(nbytes):
        raise BadRequest(
            f"input file {quoted(text)}: expected remote:URL,NBYTES,MD5, where NBYTES is a number "
            "of bytes"
        )
    if not _MD5.fullmatch(md5):
        raise BadRequest(
            f"input file {quoted(text)}: expected an MD5 of 32 hexadecimal digits at its end, "
            f"found {quoted(md5)}"
        )
    if not re.match(r"https?://[^/?#\s]", url, re.IGNORECASE):
        raise BadRequest(f"input file {quoted(text)}: expected a URL http(s)://HOST/…")
    return RemoteFile(url, int(nbytes), md5)


def _expected() -> str:
    return (
        "PATH, staged:PHYSICAL_NAME, remote:URL,NBYTES,MD5, inline:TEXT, or file:PATH "
        "for a path that looks like one of these"
    )
