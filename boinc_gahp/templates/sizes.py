"""How large the documents of a template can become (``templates.rst``, "Size limits")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.templates.filling import JobFile, build_input, build_output
from boinc_gahp.templates.types import DOCUMENT_LIMIT, InputTemplate, OutputTemplate

if TYPE_CHECKING:
    from collections.abc import Callable

#: The longest name of a staged file, and the longest name that a result can have
#: (``wire/FACT_long_job_names_kill_transitioner.json``: 191 is too long for a job and its "_0").
LONGEST_FILE_NAME = 255
LONGEST_RESULT_NAME = 191
#: The length of a project's URL; hardly any is longer.
URL_CHARS = 64
#: What the transitioner adds to each output file if upload certificates are on: 1,024 bits in hex,
#: and the tags.
_CERTIFICATE = 300


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The size of a filled-in document with the longest possible names.

    Attributes:
        what: the document: ``workunit.xml_doc`` or ``result.xml_doc_in``.
        names: whose names count: ``file`` or ``result``.
        name_chars: the assumed length of the names.
        nbytes: the size of the document with such names.
        fitting_chars: the longest names for which the database has room; below 0: none.
    """

    what: str
    names: str
    name_chars: int
    nbytes: int
    fitting_chars: int

    @property
    def fits(self) -> bool:
        """Whether there is room for it."""
        return self.nbytes < DOCUMENT_LIMIT

    def __str__(self) -> str:
        return (
            f"with {self.names} names of {self.name_chars} characters this makes a {self.what} of "
            f"{self.nbytes:,} bytes; it must have fewer than {DOCUMENT_LIMIT:,}"
        )


def worst_input(
    template: InputTemplate,
    *,
    name_chars: int = LONGEST_FILE_NAME,
    url_chars: int = URL_CHARS,
) -> WorstCase:
    """Return the size of ``workunit.xml_doc`` with names of ``name_chars`` for all the job's files.

    ``url_chars`` is the length of the project's URL. The job's own command line is not included.
    """
    count = sum(f.physical_name is None and not f.generate_locally for f in template.files)

    def constant(name: str) -> JobFile:
        url = f"{'h' * url_chars}download/3ff/{name}"
        return JobFile(name, 10**12, "0" * 32, (url,), 10**12)

    def size(chars: int) -> int:
        return build_input(template, [constant("n" * chars)] * count, staged=constant).nbytes

    return _worst("workunit.xml_doc", "file", name_chars, size)


def worst_output(
    template: OutputTemplate,
    *,
    name_chars: int = LONGEST_RESULT_NAME,
    url_chars: int = URL_CHARS,
) -> WorstCase:
    """Return the size of ``result.xml_doc_in`` for a result's name of ``name_chars``.

    Includes upload certificates, as projects have them.
    """
    certificates = len(template.files) * _CERTIFICATE
    url = f"{'h' * url_chars}_cgi/file_upload_handler"

    def size(chars: int) -> int:
        return build_output(template, "n" * chars, url, "r2147483647").nbytes + certificates

    return _worst("result.xml_doc_in", "result", name_chars, size)


def _worst(what: str, names: str, chars: int, size: Callable[[int], int]) -> WorstCase:
    """Calculate the longest names; each character adds the same to a document's size."""
    least, each = size(0), size(1) - size(0)
    room = DOCUMENT_LIMIT - 1 - least
    fitting = room // each if each else (chars if room >= 0 else -1)
    return WorstCase(what, names, chars, size(chars), fitting)
