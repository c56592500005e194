"""The output files that hosts have uploaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lxml import etree

if TYPE_CHECKING:
    import sqlite3


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """An output file that a volunteer has uploaded; size in bytes, MD5 in hex."""

    name: str
    nbytes: int
    md5: str


def uploaded_files(result: sqlite3.Row) -> list[UploadedFile]:
    """Return the files listed in ``result.xml_doc_out``, in the order of the output template."""
    if not result["xml_doc_out"]:
        return []
    root = etree.fromstring(f"<files>{result['xml_doc_out']}</files>".encode())
    return [
        UploadedFile(
            name=info.findtext("name", ""),
            nbytes=int(info.findtext("nbytes", "0")),
            md5=info.findtext("md5_cksum", ""),
        )
        for info in root.findall("file_info")
    ]
