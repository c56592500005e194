"""How Sphinx builds the documentation: ``scripts/docs`` runs it.

With the tag ``manual`` only the manual pages' own sources are read, without it all others. Nothing
is fetched from a network, neither by the build nor by the pages.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent), str(DOCS / "_ext")]

from boinc_gahp import __version__  # noqa: E402  (found on the path above)
from boinc_gahp._version import RELEASE_DATE  # noqa: E402

# Sphinx puts it here: the words that were given with -t.
tags: Any = globals()["tags"]
manual = "manual" in tags

project = "boinc_gahp"
author = ""
project_copyright = ""
version = release = __version__
today = RELEASE_DATE

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "boinc_gahp_docs.extension",
]
nitpicky = True
highlight_language = "none"
# Options begin with two hyphens, also where they are not marked.
smartquotes = False

exclude_patterns = ["_ext", "images"]
if manual:
    root_doc = "man/boinc_gahp"
    include_patterns = ["man/*"]
else:
    exclude_patterns.append("man")

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 76
add_module_names = False
toc_object_entries_show_parents = "hide"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"boinc_gahp {__version__}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_js_files = ["copying.js"]
html_show_copyright = False
html_show_sourcelink = False
# What a copy button copies of a console's example: commands, without prompts and what is shown.
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
copybutton_here_doc_delimiter = "END"
copybutton_copy_empty_lines = False
html_copy_source = False

man_pages: list[tuple[str, str, str, list[str], str]] = [
    (
        "man/boinc_gahp",
        "boinc_gahp",
        "send jobs to a BOINC project, for HTCondor and for people",
        [],
        "1",
    ),
    ("man/boinc_gahp.toml", "boinc_gahp.toml", "settings of boinc_gahp", [], "5"),
]
man_show_urls = False
