"""Defaults and checks that hold for each job in a container, whoever describes it."""

from __future__ import annotations

import math
import os
import posixpath
import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from boinc_gahp.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIVE_GFLOPS_FOR_A_DAY = 86400 * 5e9
#: Operations at which a client aborts a job that gives no bound. Nobody knows what a program needs:
#: this is two weeks at 5 GFLOPS.
FPOPS_BOUND = 14 * _FIVE_GFLOPS_FOR_A_DAY
#: Bytes of disk beside the inputs for a job that requests none; also the steps of such a default,
#: because jobs with different limits are not in one batch.
_DISK = 1e9
#: The bytes of one word for a program, and of a variable with its value; one more is the zero byte
#: at its end (``MAX_ARG_STRLEN`` in Linux's ``include/uapi/linux/binfmts.h``).
_LONGEST_WORD = 131_071
#: What is in the names of variables that often hold secrets. PWD itself is a directory.
_SECRET = re.compile(
    "TOKEN|KEY|SECRET|PASSW|PASSPHRASE|CREDENTIAL|_PWD$|(^|_)PASS$|DATABASE_URL|_DSN$",
    re.IGNORECASE,
)

#: Files, and directories of them, that hold secrets in the home directories of most people, and
#: this program's own.
_SECRET_DIRECTORIES = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud"),
    *(".condor/tokens.d", "condor/tokens.d", ".password-store", ".local/share/keyrings"),
    *(".config/boinc_gahp", ".config/gh", ".config/rclone", "condor/passwords.d"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium"),
)
_SECRET_FILES = frozenset(
    {
        *(".netrc", "_netrc", ".pgpass", ".pypirc", ".git-credentials", ".my.cnf", ".npmrc"),
        *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"),
        *(".bash_history", ".zsh_history", ".python_history", ".mysql_history", ".psql_history"),
        *(".vault-token", "boinc_gahp.toml"),
    }
)
_IN_SECRET_DIRECTORY = re.compile(f"/(?:{'|'.join(map(re.escape, _SECRET_DIRECTORIES))})/")
#: What to do about a file that only looks like a secret, on every way into a job.
IF_HARMLESS = (
    "looks as if it held secrets, and volunteers can read all files of a job: leave it out; if it "
    "holds none, name it as an input of its own, too (--input; in Python inputs; "
    "transfer_input_files; Snakemake's input:)"
)


class Option(NamedTuple):
    """What may be asked for the jobs of a program, wherever they are described.

    Attributes:
        name: the keyword in Python.
        help: for the command line; empty: people cannot ask for it there and in Python.
        attribute: what it is called in a job's ad, after ``Boinc``; None: HTCondor has it itself.
        default: what holds if it is not given; that of a flag is False.
        least, most: the smallest and the largest number.
    """

    name: str
    help: str
    attribute: str | None
    default: int
    least: int
    most: int

    @property
    def option(self) -> str:
        """Its name on the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def is_flag(self) -> bool:
        """Whether it is given or not, without a number."""
        return self.default is False

    def checked(self, value: Any) -> Any:
        """Return a value that was given in Python; raises BadRequest if it cannot be one."""
        is_right = isinstance(value, bool) is self.is_flag and isinstance(value, int)
        if not is_right or not self.least <= value <= self.most:  # "no" would be true
            numbers = f"a whole number from {self.least} to {self.most:,}"
            expected = "True or False" if self.is_flag else numbers
            raise BadRequest(f"{self.name} is {value!r}: expected {expected}")
        return value


def _option(
    help_text: str, attribute: str | None, default: int = False, least: int = 0, most: int = 1
) -> Any:
    """Return a field of what may be asked for; the arguments are those of :class:`Option`."""
    return field(default=default, metadata={"option": (help_text, attribute, default, least, most)})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What may be asked for a job in a container, however it is described.

    Each is declared here only. From its field follow the command line's option, the keyword in
    Python, the attribute of a job's ad, and their checks (:data:`OPTIONS`).

    Attributes:
        network: whether it may use the network.
        cpus: processors.
        max_errors: how many errors are followed by another attempt; 0: one attempt.
        quorum: results that have to agree.
    """

    network: bool = _option("let the program use the network (default: it cannot)", "Network")
    # No volunteer has a computer with more processors.
    cpus: int = _option("processors for each job", None, 1, 1, 1024)
    # Each error is another volunteer's time.
    max_errors: int = _option(
        *("how many errors of a job are followed by another attempt", "MaxErrors", 3, 0, 100)
    )
    # Each of these results is computed by another volunteer.
    quorum: int = _option("", "Quorum", 1, 1, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOptions(JobOptions):
    """What may be asked for a job, and for how its files are found.

    Attributes:
        follow_links: whether symbolic links may lead out of input directories.
    """

    follow_links: bool = _option(
        "send what symbolic links in a directory lead to outside of it (default: they are "
        "refused); no secrets",
        "FollowLinks",
    )


#: All of them, by their names.
OPTIONS = {
    each.name: Option(each.name, *each.metadata["option"]) for each in fields(ProgramOptions)
}
#: Those that people can ask for, on the command line and in Python.
ASKED = {name: each for name, each in OPTIONS.items() if each.help}
#: Errors of a job that are followed by another attempt: volunteers abort jobs, and their engines
#: fail now and then.
MAX_ERRORS = OPTIONS["max_errors"].default


def default_disk(inputs: float, image: float = 0) -> float:
    """Return the bytes of disk for a job that asks for none: 1 GB beside its inputs.

    An input may be there twice: in an archive, and unpacked.

    Args:
        inputs: bytes of its files and directories.
        image: bytes of its image's file, if the job brings one.
    """
    return _DISK * math.ceil(1 + (image + 2 * inputs) / _DISK)


def secret_names(names: Iterable[str]) -> list[str]:
    """Return those names of variables that look like names of secrets."""
    return [name for name in names if _SECRET.search(name)]


def may_be_secret(path: str) -> bool:
    """Tell by its path whether a file or directory holds secrets."""
    if os.path.basename(path) in _SECRET_FILES:  # noqa: PTH119  (not UTF-8)
        return True
    return _IN_SECRET_DIRECTORY.search(f"/{path}/") is not None


def link_to_secret(path: str) -> str | None:
    """Return where symbolic links lead, at the end of a path or on the way, if that may be secret.

    Nobody who names such a path, or a directory with it, can be taken to mean its target: a
    stranger may have named the link ``id_rsa``, too.
    """
    real = os.path.realpath(path)
    is_linked = real != os.path.abspath(path)  # noqa: PTH100  (bytes that are not UTF-8)
    return real if is_linked and may_be_secret(real) else None


def secrets_among(paths: Iterable[tuple[str, str]]) -> list[str]:
    """Return the files and directories below the first one that may be secret, by their names.

    Of a directory with secrets, only itself is returned; nothing is if the first one is in such a
    directory, or is one: then it was named for what it is.

    Args:
        paths: absolute paths, each directory before what is in it; with the same paths without
            symbolic links.
    """
    found: list[str] = []
    within: set[str] = set()
    for number, (path, real) in enumerate(paths):
        is_inside = os.path.dirname(path) in within  # noqa: PTH120
        if is_inside or may_be_secret(path) or may_be_secret(real):
            within.add(path)
            if number and not is_inside:
                found.append(path)
    return found


def is_variable(name: str) -> bool:
    """Tell whether a variable of the environment can have this name; see :class:`.Program`."""
    return bool(name) and not name.startswith("-") and not set("=\0") & set(name)


def check_word(text: str) -> None:
    """Raise ValueError for what no program can get as a word, or as ``NAME=VALUE``; says why."""
    if "\0" in text:
        raise ValueError("has a zero byte, which no program can get: put it into a file")
    try:
        size = len(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        raise ValueError("has a character that is not valid Unicode: correct it") from None
    if size > _LONGEST_WORD:
        raise ValueError(
            f"has {size:,} bytes, and a program gets at most {_LONGEST_WORD:,}: put it into a file"
        )


def output_path(name: str) -> str:
    """Return the path of a file or directory that a program makes, below the job's directory.

    Raises:
        ValueError: it cannot be an output; says why, and what to do.
    """
    check_word(name)
    plain = posixpath.normpath(name)
    if plain.startswith(("/", "..")) or plain == ".":
        raise ValueError(
            "is not in the job's directory; a volunteer's computer sends back only what is there"
        )
    if "\\" in plain:  # GNU tar reads it as an escape in a name that it is given
        raise ValueError("has a backslash: rename it")
    return plain
