"""References from signatures and docstrings to what the pages document.

The package hands out names of its modules: what a signature calls ``boinc_gahp.api.batch.Batch``,
or just ``Batch``, is documented as ``boinc_gahp.Batch``.
What is not ours (``Path``, ``str``), or not public, is shown without a link: no other project's
pages are asked when these are built. A reference to what does not exist is a fault.
"""

from __future__ import annotations

import builtins
import inspect
import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.domains.python import PythonDomain
    from sphinx.environment import BuildEnvironment

_PACKAGE = "boinc_gahp"


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Node | None:
    """Return a link for a Python name that Sphinx does not find, or plain text; None: a fault."""
    if node.get("refdomain") != "py":
        return None
    target: str = node["reftarget"]
    domain = cast("PythonDomain", env.get_domain("py"))
    found = _documented(target, node.get("py:module") or "", domain)
    if found is not None:
        return domain.resolve_xref(
            env,
            node.get("refdoc", env.current_document.docname),
            app.builder,
            "obj",
            found,
            _absolute(node),
            cast("Any", content),
        )
    by_hand = "refwarn" in node
    inside = node.get("py:class") or ""
    exists = _exists(target) or (inside and _exists(f"{inside}.{target}"))
    return content if not by_hand or exists else None


def _documented(target: str, module: str, domain: PythonDomain) -> str | None:
    """Return the full name of the one documented object that is meant, if there is one."""
    parts = target.split(".")
    for first in range(len(parts)):
        if first and not target.startswith(_PACKAGE):
            break
        ending = "." + ".".join(parts[first:])
        known = [name for name in domain.objects if name.endswith(ending)]
        # The room in which it was asked for, or which the name itself tells, comes first.
        room = ".".join(parts[:2]) if target.startswith(f"{_PACKAGE}.") else module
        near = [name for name in known if room and name.startswith(f"{room}.")]
        for candidates in (near, known):
            if len(candidates) == 1:
                return candidates[0]
    return None


def _absolute(node: pending_xref) -> pending_xref:
    """Return the reference without what would make Sphinx look beside the full name."""
    copy = node.copy()
    for key in ("py:module", "py:class", "refspecific"):
        copy[key] = None
    return cast("pending_xref", copy)


def _exists(target: str) -> bool:
    """Tell whether a name can be imported, or is always there."""
    parts = target.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:end]))
        except ImportError:
            continue
        return _has(found, parts[end:])
    ours = [module for name, module in sys.modules.items() if name.startswith(f"{_PACKAGE}.")]
    return any(_has(module, parts) for module in (builtins, *ours))


def _has(thing: Any, names: list[str]) -> bool:
    for name in names:
        if not hasattr(thing, name):
            # What instances alone have is in their class's docstring.
            return bool(
                re.search(rf"^ +{re.escape(name)}: ", inspect.getdoc(thing) or "", re.MULTILINE)
            )
        thing = getattr(thing, name)
    return True
