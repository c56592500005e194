"""Jobs' own templates, and what create_work says to templates that it cannot use."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

from ..files import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from ..templates import TemplateError
    from .core import Core

#: How create_work ends when a template and what it was told do not go together.
XML_PARSE = "process_input_template(): unexpected XML tag or syntax\ncreate_work() failed: -112\n"
#: By the problem that the template has for us.
_SAID = {
    "no-body": "process_input_template: bad WU template - no <workunit>",
    "no-open-name": "No open name found and copy_file not specified",
}


def refused_by_create_work(error: TemplateError) -> str:
    """Return what create_work says to an input template that PHP can read; '': PHP cannot either.

    PHP looks for XML alone, and counts the files.
    """
    problem = error.problems[0]
    if problem.code == "file-count":
        # "1 <file_info> but 0 <file_ref>: ..."
        infos, _, _, refs, *_ = problem.text.split()
        return "too many <file_ref>s" if int(refs) > int(infos) else "#file refs != #file infos"
    return _SAID.get(problem.code, "")


@lru_cache(maxsize=64)
def template_name(xml: str) -> str:
    """Return the file name under which a job's own template is kept."""
    return hashlib.md5(xml.encode(), usedforsecurity=False).hexdigest()


def keep_template(core: Core, xml: str) -> str:
    """Write a job's own template into ``templates/tmp`` and return its path there."""
    path: Path = core.templates / "tmp" / template_name(xml)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, xml)
    return str(path.relative_to(core.directory))
