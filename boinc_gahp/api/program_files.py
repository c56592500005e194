"""Finds the files of a program in the words of its command line, and their names in the job."""

from __future__ import annotations

import os
import posixpath
import stat
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.api.rows.texts import KINDS, path_of, read_file
from boinc_gahp.containers.rules import IF_HARMLESS, may_be_secret
from boinc_gahp.errors import BadRequest, StagingError
from boinc_gahp.submit.digests import check_link
from boinc_gahp.submit.generated_files import Member
from boinc_gahp.submit.trees import look
from boinc_gahp.submit.types import InlineFile, Input, LocalFile, RemoteFile
from boinc_gahp.text import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from boinc_gahp.submit.trees import Tree as Look
    from boinc_gahp.submit.types import File

#: What is in these directories is the system's: in the job, it is the image's.
_SYSTEM = (
    "bin",
    "boot",
    "dev",
    "etc",
    "lib",
    "lib32",
    "lib64",
    "proc",
    "run",
    "sbin",
    "sys",
    "usr",
)
#: A longer word is no path.
_LONGEST = 4096


class Source(NamedTuple):
    """A file or directory that a job needs.

    Attributes:
        name: its path in the job's directory.
        file: a file; or a directory of this machine.
        nbytes: its size; 0 if it is not known here.
        shown: its name, and where it is if that is elsewhere than its name says.
        look: what is in it, if it is a directory.
    """

    name: str
    file: Input | Member
    nbytes: int = 0
    shown: str = ""
    look: Look | None = None

    @property
    def files(self) -> int:
        """How many files it is."""
        return 1 if self.look is None else self.look.files


#: A word that names a file: the word as the job has it, and the file.
Found = tuple[str, Source]


class FileFinder:
    """Finds files and directories, each once; relative paths start at the working directory.

    Args:
        follow_links: whether links in directories may lead out of them.
    """

    def __init__(self, *, follow_links: bool = False) -> None:
        self._follow_links = follow_links
        self._words: dict[str, Found | None] = {}
        self._sources: dict[tuple[str, str], Source] = {}
        #: Paths of files that are no secrets.
        self._public: set[str] = set()

    def in_words(
        self, words: Iterable[str], named: Collection[str] = ()
    ) -> tuple[list[str], list[Source]]:
        """Return the words as the job has them, and the files that they name.

        A word names a file of this machine, or the part behind its first ``=`` does.

        Args:
            words: the words.
            named: absolute paths of the job's inputs: these may look like secrets.

        Raises:
            BadRequest: one of them mostly holds secrets.
            StagingError: one cannot be read.
        """
        filled, sources = [], []
        for word in words:
            before, found = "", self.in_word(word)
            if found is None and "=" in word:
                name, _, rest = word.partition("=")
                before, found = f"{name}=", self.in_word(rest)
            if found is None:
                filled.append(word)
            else:
                shown, source = found
                path = getattr(source.file, "path", "")
                if path not in self._public and path not in named:
                    check_public(path)
                    self._public.add(path)
                filled.append(before + shown)
                sources.append(source)
        return filled, sources

    def in_word(self, word: str) -> Found | None:
        """Return the file or directory that a whole word names; None: it names none."""
        if word not in self._words:
            self._words[word] = self._look(word)
        return self._words[word]

    def _look(self, word: str) -> Found | None:
        if not word or "\0" in word or len(word) > _LONGEST:
            return None
        plain = posixpath.normpath(word)
        if posixpath.basename(plain) in ("", ".", ".."):
            return None
        if plain.startswith("/") and plain.lstrip("/").split("/")[0] in _SYSTEM:
            return None
        try:
            mode = os.stat(plain).st_mode  # noqa: PTH116  (bytes that are not UTF-8)
        except (OSError, ValueError):
            return None
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            return None
        as_typed = not plain.startswith(("/", "../")) and ".." not in word.split("/")
        name = plain if as_typed else posixpath.basename(plain)
        shown = word if as_typed else name + "/" * word.endswith("/")
        return shown, self.local(name, plain)

    def local(self, name: str, path: str) -> Source:
        """Return a file or directory of this machine under a name in the job's directory.

        Raises:
            StagingError: it cannot be read.
        """
        absolute = os.path.abspath(path)  # noqa: PTH100  (a link's target is not looked for)
        key = name, absolute
        is_there = absolute == os.path.abspath(name)  # noqa: PTH100
        shown = name if is_there else f"{name}={posixpath.normpath(path)}"
        if key not in self._sources:
            if os.path.isdir(absolute):  # noqa: PTH112
                # Its user may have changed it just now.
                found = look(absolute, follow_links=self._follow_links, may_be_old=lambda _: False)
                tree = Member(name, absolute, found.stamp)
                self._sources[key] = Source(name, tree, found.nbytes, f"{shown}/", found)
            else:
                try:
                    nbytes = os.stat(absolute).st_size  # noqa: PTH116
                except (OSError, ValueError) as error:
                    why = getattr(error, "strerror", None) or error
                    raise StagingError(
                        f"input {path!r} cannot be read: {why}", path=path, errno=0
                    ) from None
                self._sources[key] = Source(name, LocalFile(absolute), nbytes, shown)
        return self._sources[key]

    def given(self, text: str) -> Source:
        """Return the input that ``PATH``, ``NAME=FILE`` or ``remote:…`` describes.

        A path keeps its directories, as in a command line.

        Raises:
            BadRequest: it has no name that a file in the job's directory can have.
            StagingError: it cannot be read.
        """
        name, equals, rest = text.partition("=")
        is_named = equals and name and name.partition(":")[0].lower() not in KINDS
        if is_named and not os.path.exists(text):  # noqa: PTH110
            return self.named(name, rest)
        file = read_file(text)
        if isinstance(file, RemoteFile):
            return self.named(posixpath.basename(file.url.split("?")[0].split("#")[0]), file)
        if not isinstance(file, LocalFile):
            raise BadRequest(f"input {quoted(text)} has no name: write NAME={text}")
        found = self._look(file.path)
        if found is not None:
            return found[1]
        return self.named(posixpath.basename(posixpath.normpath(file.path)), file)

    def named(self, name: str, given: File) -> Source:
        """Return an input under a name.

        Raises:
            BadRequest: a file in the job's directory cannot have this name.
            StagingError: it cannot be read.
        """
        plain = posixpath.normpath(name) if name else ""
        if plain in ("", ".") or plain.startswith(("/", "..")) or "\0" in plain:
            raise BadRequest(
                f"the input {quoted(name)} cannot have this name: expected a path in the job's "
                "directory, such as data.csv or data/a.csv"
            )
        if isinstance(given, str):
            given = read_file(given)
        if isinstance(given, LocalFile) or not isinstance(given, Input):
            return self.local(plain, path_of(given))
        nbytes = given.nbytes if isinstance(given, RemoteFile) else 0
        if isinstance(given, InlineFile):
            nbytes = len(given.text.encode("utf-8", "surrogateescape"))
        return Source(plain, given, nbytes, plain)


def together(sources: Iterable[Source]) -> Mapping[str, Source]:
    """Return the inputs of a job by their names, each once, without what a directory brings.

    Raises:
        BadRequest: two have one name.
    """
    found: dict[str, Source] = {}
    for source in sources:
        other = found.setdefault(source.name, source)
        if other.file != source.file:
            raise BadRequest(
                f"{_path(other)} and {_path(source)} would both be {quoted(source.name)} in the "
                "job's directory: rename one, or name it with an input NAME=FILE"
            )
    for source in found.values():
        above = _above(source, found)
        if above is not None:
            raise BadRequest(
                f"{_path(above)} would be the file {quoted(above.name)} in the job's directory, "
                f"and {_path(source)} would be {quoted(source.name)}, below it: rename one, or "
                "name it with an input NAME=FILE"
            )
    trees = [source.file for source in found.values() if isinstance(source.file, Member)]
    return {
        name: source
        for name, source in found.items()
        if not any(_brings(tree, source) for tree in trees if tree is not source.file)
    }


def check_public(path: str) -> None:
    """Raise for a file or directory that a word of a command should not send.

    Raises:
        BadRequest: it may be secret.
        StagingError: it is a link to such a file or directory.
    """
    check_link(path)
    if may_be_secret(path):
        raise BadRequest(f"a word of the command names {quoted(path)}, which {IF_HARMLESS}")


def _above(source: Source, found: Mapping[str, Source]) -> Source | None:
    """Return a file whose name is that of a directory in another's name; None: there is none."""
    name = posixpath.dirname(source.name)
    while name:
        if name in found and not isinstance(found[name].file, Member):
            return found[name]
        name = posixpath.dirname(name)
    return None


def _brings(tree: Member, source: Source) -> bool:
    """Tell whether a file of this path and name is in a directory that goes, too."""
    path = getattr(source.file, "path", "")
    inside = source.name.removeprefix(f"{tree.name}/")
    return inside != source.name and path == f"{tree.path}/{inside}"


def _path(source: Source) -> str:
    return quoted(str(getattr(source.file, "path", None) or source.file))
