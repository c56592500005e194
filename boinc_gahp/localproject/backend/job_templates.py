"""Jobs' own templates, and create_work's messages for templates that it cannot use."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

from boinc_gahp.files import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from boinc_gahp.localproject.core import Core
    from boinc_gahp.templates.types import TemplateError

#: How create_work ends if a template and the options do not go together.
XML_PARSE = "process_input_template(): unexpected XML tag or syntax\ncreate_work() failed: -112\n"
#: By the problem that we find in the template.
_SAID = {
    "no-body": "process_input_template: bad WU template - no <workunit>",
    "no-open-name": "No open name found and copy_file not specified",
}


def refused_by_create_work(error: TemplateError) -> str:
    """Return create_work's message for an input template; '' if even PHP cannot read it.

    PHP only checks the XML and counts the files.
    """
    problem = error.problems[0]
    if problem.code == "file-count":
        # "1 <file_info> but 0 <file_ref>: ..."
        infos, _, _, refs, *_ = problem.text.split()
        return "too many <file_ref>s" if int(refs) > int(infos) else "#file refs != #file infos"
    return _SAID.get(problem.code, "")


@lru_cache(maxsize=64)
def template_name(xml: str) -> str:
    """Return the name of the file for a job's own template."""
    return hashlib.md5(xml.encode(), usedforsecurity=False).hexdigest()


def keep_template(core: Core, xml: str) -> str:
    """Write a job's own template into ``templates/tmp`` and return its path there."""
    path: Path = core.templates / "tmp" / template_name(xml)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, xml)
    return str(path.relative_to(core.directory))
