"""Finds what a project would mangle or choke on, before anything is created.

Each rule is for something that a real project did (``web-rpcs.rst``, "create_batch" and
"submit_batch"); each message names the job and says what to change. All functions here depend only
on their arguments.
"""

from __future__ import annotations

import os
import re
import unicodedata
from typing import TYPE_CHECKING

from boinc_gahp.errors import BadRequest, JobRefused
from boinc_gahp.rpc import command_lines
from boinc_gahp.submit.types import InlineFile, LocalFile, RemoteFile, StagedFile
from boinc_gahp.text import character_name, count, nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from typing_extensions import Self

    from boinc_gahp.submit.types import Input
    from boinc_gahp.templates.types import InputTemplate, OutputTemplate

#: 190 characters are accepted and stop the project's transitioner for good; at 180 the names of
#: results and of their files still fit (``web-rpcs.rst``, "Job names").
MAX_JOB_NAME = 180
#: The column's width (``web-rpcs.rst``, "create_batch").
MAX_BATCH_NAME = 255
#: Longer names of files are refused (``web-rpcs.rst``, "Files").
MAX_PHYSICAL_NAME = 255
#: Bytes that create_work reads for one job, with the newline (``web-rpcs.rst``, "Command lines").
MAX_JOB_LINE = 4094

#: Why a character cannot stand in a job's name.
_JOB_NAME_TROUBLE = {
    " ": "the project would take what follows for a file name",
    "'": "the project's database refuses it",
    '"': "the project would end the name there",
    "\\": "the project would drop it",
    **dict.fromkeys("&<>", "every later status reply of its batch would be broken"),
    "/": "its outputs could never be uploaded",
}
_BATCH_NAME_TROUBLE = {
    **dict.fromkeys("'\"\\", "the project could never find the batch again"),
    **dict.fromkeys("&<>", "every later list of this account's batches would be broken"),
}
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029\ufffe\uffff\ud800-\udfff]")
_NOT_IN_URL = re.compile(r"""[\s"'\\<>\x00-\x20\x7f]|[^\x00-\x7f]""")
#: Texts that clients turn into another character when they read a workunit.
_ENTITY = re.compile(r"&(?:[a-z]+|#[0-9]+);")
#: Characters that are not escaped on the way from a job's template to SQL, or to clients' XML.
_NOT_IN_TEMPLATE = re.compile(r"[<&'\\]")
_MD5 = re.compile(r"[0-9A-Fa-f]{32}")
_NOT_IN_PHYSICAL_NAME = re.compile(r"[^A-Za-z0-9_.-]")
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_TEMPLATE_FILENAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}")
_EXTENSION = re.compile(r"\.[A-Za-z0-9_-]{1,32}")

#: The project's app, and what stands before a BUDA app's name where an app is named.
BUDA = "buda"
_BUDA_PREFIX = f"{BUDA}:"
#: What the form that makes such an app accepts (``is_valid_filename`` in
#: ``html/inc/util_basic.inc``), less names of hidden directories, which BOINC passes over, and
#: spaces at the ends.
_BUDA_NAME = re.compile(r"[A-Za-z0-9_-](?:[A-Za-z0-9_. -]{0,253}[A-Za-z0-9_.-])?")


class naming:  # noqa: N801  (it is used as a function)
    """Have each JobRefused that is raised inside tell which job it is about.

    Attributes:
        job_name: the job; the block may go on to another one.
    """

    def __init__(self, job_name: str = "") -> None:
        self.job_name = job_name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, JobRefused):
            error.job_name = self.job_name


def fold(name: str) -> str:
    """Return ``name`` as the project's database compares it.

    Its collation ignores case, accents and trailing spaces (``web-rpcs.rst``, "create_batch").
    """
    if name.isascii():
        return name.rstrip(" ").casefold()
    decomposed = unicodedata.normalize("NFKD", name.rstrip(" "))
    return "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()


def check_batch_name(name: str) -> None:
    """Raise JobRefused for a batch name that the project accepts and then cannot find."""
    if not name:
        raise JobRefused("the batch's name is empty: the project would make one up")
    if name == "0":
        raise JobRefused("a batch cannot be called 0: the project treats that as no name")
    _check_characters(f"batch name {quoted(name)}", name, _BATCH_NAME_TROUBLE)
    if name != name.strip():
        raise JobRefused(
            f"batch name {quoted(name)} begins or ends with white space, which the project ignores "
            "when it compares names: leave it out"
        )
    if len(name) > MAX_BATCH_NAME:
        raise JobRefused(
            f"batch name {quoted(name)} has {len(name)} characters; a project keeps at most "
            f"{MAX_BATCH_NAME}: use a shorter name"
        )


def check_job_name(name: str, seen: dict[str, str]) -> None:
    """Raise JobRefused for a name that the project would mangle, or that is there twice.

    ``seen`` holds the names of the batch's other jobs, from earlier calls.
    """
    if not name or name == "0":
        raise JobRefused(
            f"a job is called {quoted(name)}: the project would make up a name for it, and "
            "could then make the job twice; give every job a name"
        )
    _check_characters(f"job name {quoted(name)}", name, _JOB_NAME_TROUBLE)
    size, key = len(name.encode()), fold(name)
    if size > MAX_JOB_NAME:
        raise JobRefused(
            f"job name {quoted(name)} has {size} bytes; names of more than {MAX_JOB_NAME} "
            "stop the project's transitioner: use a shorter name"
        )
    other = seen.get(key)
    if other is not None:
        raise JobRefused(
            f"job name {quoted(name)} is twice in this request (also as {quoted(other)}): a "
            "project ignores case and accents in names; give every job a name of its own"
        )
    seen[key] = name


def command_line(job_name: str, args: Sequence[str], *, escape: bool) -> str:
    """Return the job's arguments as the single text that a project stores.

    See :func:`boinc_gahp.rpc.command_lines.command_line`, with ``escape`` for its ``doubled``.

    Raises:
        JobRefused: an argument would not arrive unchanged.
    """
    try:
        return command_lines.command_line(args, doubled=escape)
    except BadRequest as error:
        raise JobRefused(f"job {quoted(job_name)}: {error}") from error


def check_job_line(job_name: str, command: str, words: Sequence[str]) -> None:
    """Raise JobRefused if create_work could not read this job's line.

    Args:
        job_name: the job.
        command: its command line.
        words: the others: physical names, the words for remote files, and so on.
    """
    characters = len(job_name) + len(command) + sum(map(len, words))
    # No character has more than four bytes. The options' names and the spaces have fewer than 40.
    if 4 * characters + 40 + len(words) <= MAX_JOB_LINE:
        return
    size = len(f" --wu_name {job_name}".encode()) + 1
    if command:
        size += len(f' --command_line "{command}"'.encode())
    size += sum(1 + len(word.encode()) for word in words)
    if size > MAX_JOB_LINE:
        raise JobRefused(
            f"job {quoted(job_name)}: its name, arguments and file names come to {size} bytes; a "
            f"project reads at most {MAX_JOB_LINE} for one job: pass long arguments in an input "
            "file, or put many input files into one archive"
        )


def check_template_filename(filename: str | None) -> None:
    """Raise JobRefused if this cannot name a file in the project's directory of templates."""
    if filename is not None and not _TEMPLATE_FILENAME.fullmatch(filename):
        raise JobRefused(
            f"template file name {quoted(filename)}: expected the name of a file in the project's "
            "templates directory, of letters, digits and the characters _ . -"
        )


def check_input(job_name: str, open_name: str, item: Input) -> None:
    """Raise JobRefused for a file that the project would not accept as it is; opens no file."""
    if isinstance(item, RemoteFile):
        check_remote(job_name, item)
    elif isinstance(item, StagedFile):
        _check_staged(job_name, item)
    elif isinstance(item, InlineFile):
        _check_inline(job_name, open_name, item)


def _check_staged(job_name: str, file: StagedFile) -> None:
    """Check a physical name, which is written into the job's line without quotes."""
    name = file.physical_name
    where = f"job {quoted(job_name)}: staged file {quoted(name)}"
    bad = _NOT_IN_PHYSICAL_NAME.search(name)
    if bad:
        raise JobRefused(
            f"{where}: its name holds {_character(bad[0])}; names of files on a project have "
            "letters, digits and the characters _ . -"
        )
    if not name or name.startswith("-") or not name.strip("."):
        raise JobRefused(
            f"{where}: this is not the name of a file on a project; a file that boinc_gahp has "
            "staged is called <MD5>.<extension>"
        )
    if len(name) > MAX_PHYSICAL_NAME:
        raise JobRefused(
            f"{where}: its name has {len(name)} characters; a project accepts at most "
            f"{MAX_PHYSICAL_NAME}"
        )


def _check_inline(job_name: str, open_name: str, file: InlineFile) -> None:
    where = f"job {quoted(job_name)}: inline file {quoted(open_name)}"
    if not file.text:
        raise JobRefused(
            f"{where} is empty, and a project cannot store an empty inline file: give the path of "
            "an empty file instead"
        )
    bad = _NOT_IN_XML.search(file.text)
    if bad:
        raise JobRefused(
            f"{where} holds {character_name(bad[0])}, which a request to a project cannot "
            "contain: put the contents into a file, and give its path"
        )


def check_remote(job_name: str, file: RemoteFile) -> None:
    """Raise JobRefused for a remote file that create_work would not accept as it is.

    Its URL is written into the job's line without quotes, and then into SQL.
    """
    where = f"job {quoted(job_name)}: remote file {quoted(file.url)}"
    bad = _NOT_IN_URL.search(file.url)
    if bad:
        raise JobRefused(
            f"{where}: its URL holds {_character(bad[0])}, which cannot be sent to the "
            "project: write it as %XX"
        )
    entity = _ENTITY.search(file.url)
    if entity:
        raise JobRefused(
            f"{where}: its URL holds {entity[0]}, which volunteers' clients turn into "
            "another character: write its & as %26, or use another URL"
        )
    if not _MD5.fullmatch(file.md5) or file.nbytes < 0:
        raise JobRefused(
            f"{where}: expected its size in bytes and its MD5 as 32 hexadecimal digits, found "
            f"{file.nbytes} and {quoted(file.md5)}"
        )


def check_own_command_line(job_name: str, template: InputTemplate) -> None:
    """Raise JobRefused if the command line in a job's own template may not arrive intact.

    A project puts it into SQL and into the XML that clients read (``containers.rst``, "On the
    server"; ``web-rpcs.rst``, "What clients make of it").
    """
    bad = _NOT_IN_TEMPLATE.search(template.command_line or "")
    if bad:
        raise JobRefused(
            f"job {quoted(job_name)}: its own input template has the command line "
            f"{quoted(template.command_line or '')}, which holds a {bad[0]}: the project's "
            "database or volunteers' clients may change it; use the job's arguments instead"
        )


def check_one_command_line(job_name: str, template: InputTemplate, app_name: str) -> None:
    """Raise JobRefused if the template of a job with arguments has a command line."""
    if template.command_line:
        raise JobRefused(
            f"job {quoted(job_name)} has arguments, and so has the input template of app "
            f"{app_name} ({quoted(template.command_line)}): a project accepts only one of them; "
            "leave out the job's"
        )


def order_of_inputs(
    job_name: str,
    given: Mapping[str, Input],
    template: InputTemplate,
    app_name: str,
    *,
    by_name: bool = False,
) -> tuple[str, ...]:
    """Return the names of the job's files in the order of the app's input template.

    They are matched by open name; if no name matches and the count is right, by position, unless
    ``by_name``.

    Raises:
        JobRefused: names the job, its files and the names that the app wants.
    """
    wanted = [info.open_name for info in template.per_job_files]
    if len(given) == len(wanted) and given.keys() == set(wanted):
        return tuple(wanted)
    strangers = [name for name in given if name not in wanted]
    matching = len(strangers) < len(given)
    if not by_name and not matching and len(given) == len(wanted):
        return tuple(given)
    if not wanted:
        raise JobRefused(
            f"job {quoted(job_name)}: app {app_name} has no input files: leave out "
            f"{', '.join(map(quoted, given))}"
        )
    names = ", ".join(map(quoted, wanted))
    found = ", ".join(map(quoted, given)) or "none"
    detail = ""
    if strangers and by_name:
        detail = f"; {quoted(strangers[0])} is none of these"
        meant = nearest(strangers[0], (name for name in wanted if name not in given))
        detail += f", did you mean {quoted(meant)}?" if meant else ""
    elif strangers and matching:
        detail = f"; {quoted(_source(strangers[0], given[strangers[0]]))} is none of these"
    raise JobRefused(
        f"job {quoted(job_name)}: app {app_name} wants {count(len(wanted), 'input file')} "
        f"({names}), the job has {len(given)} "
        f"({found}){detail}"
    )


def check_outputs(
    job_name: str, outputs: Iterable[str], template: OutputTemplate, app_name: str
) -> None:
    """Raise JobRefused for an output that the app does not make, before volunteers work for it.

    If the app's only output is an archive (its name ends in .zip), its contents are not known yet.
    """
    names = [info.open_name for info in template.files]
    if len(names) == 1 and names[0].lower().endswith(".zip"):
        return
    made = dict.fromkeys(names, "")
    for name in outputs:
        if find_output(name, made) is None:
            known = ", ".join(quoted(each) for each in names) or "none"
            raise JobRefused(
                f"job {quoted(job_name)} asks for the output {quoted(name)} "
                f"(transfer_output_files); the outputs of app {app_name} are: {known}"
            )


def _source(open_name: str, item: Input) -> str:
    """Return the name of a file that the submitter will recognise."""
    if isinstance(item, LocalFile):
        return item.path
    if isinstance(item, RemoteFile):
        return item.url
    return item.physical_name if isinstance(item, StagedFile) else open_name


def extension(path: str) -> str:
    """Return the extension that a staged file's physical name takes from ``path``.

    Empty if it holds a character that projects refuse in names (``web-rpcs.rst``, "Files").
    """
    base = path.rsplit("/", 1)[-1]
    head, dot, tail = base.rpartition(".")
    if head and _EXTENSION.fullmatch(dot + tail):
        return dot + tail
    return ""


def _check_characters(what: str, text: str, trouble: dict[str, str]) -> None:
    control = _CONTROL.search(text)
    if control:
        raise JobRefused(
            f"{what} holds {character_name(control[0])}: use letters, digits and punctuation"
        )
    for character, harm in trouble.items():
        if character in text:
            shown = _character(character)
            raise JobRefused(f"{what} holds {shown}: {harm}; use another character")


def _character(character: str) -> str:
    if character == " ":
        return "a space"
    return f"a {character}" if "!" <= character <= "~" else character_name(character)


def find_output(source: str, outputs: Mapping[str, str]) -> str | None:
    """Return the output that a spec's source names: by its full path first, then its base name."""
    for name in (source, os.path.normpath(source), base_name(source)):
        if name in outputs:
            return name
    return None


def base_name(name: str) -> str:
    """Return the last part of an output's name."""
    return name.rstrip("/").rpartition("/")[2]


def buda_name(app_name: str) -> str | None:
    """Return the NAME of ``buda:NAME``; None for an app of the project's database.

    Raises:
        JobRefused: no BUDA app can have this name.
    """
    if not app_name.startswith(_BUDA_PREFIX):
        return None
    name = app_name.removeprefix(_BUDA_PREFIX)
    if not _BUDA_NAME.fullmatch(name):
        raise JobRefused(
            f"app {quoted(app_name)}: after {_BUDA_PREFIX} the internal name of a BUDA app is "
            "expected, of letters, digits, spaces and the characters _ . -; the project's admin "
            "knows it"
        )
    return name


def project_app(app_name: str) -> str:
    """Return the project's app for an app's name: ``buda`` for ``buda:NAME``.

    Raises:
        JobRefused: no BUDA app can have this name.
    """
    return app_name if buda_name(app_name) is None else BUDA


def short_name(app_name: str) -> str:
    """Return an app's name for those of batches and jobs: ``NAME`` for ``buda:NAME``.

    Files of results begin with it, and some volunteers' systems have no ``:`` in names of files.
    """
    return app_name.removeprefix(_BUDA_PREFIX).replace(" ", "_")
