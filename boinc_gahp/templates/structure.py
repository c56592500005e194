"""Checks which elements a template has, and where (``templates.rst``)."""

from __future__ import annotations

from itertools import dropwhile
from typing import TYPE_CHECKING

from boinc_gahp.templates.markup import children
from boinc_gahp.templates.vocabulary import INPUT

if TYPE_CHECKING:
    from lxml import etree

    from boinc_gahp.templates.markup import Findings
    from boinc_gahp.templates.reading import Parts
    from boinc_gahp.templates.vocabulary import Children, Vocabulary


def check_structure(parts: Parts, words: Vocabulary, found: Findings) -> None:
    """Note elements that are unknown, misplaced, repeated, out of order, or outdated."""
    if parts.root is not None:
        _check_root(parts.root, words, found)
    for info in parts.file_infos:
        _check_children(info, words.file_info, words, found)
    if parts.body is None:
        return
    _check_children(parts.body, words.in_body, words, found)
    for child in children(parts.body):
        if child.tag == "file_ref":
            _check_children(child, words.file_ref, words, found)
    _check_places(parts, parts.body, words, found)


def _check_root(root: etree._Element, words: Vocabulary, found: Findings) -> None:
    bodies = 0
    for child in children(root):
        bodies += child.tag == words.body
        if child.tag == words.body and bodies > 1:
            found.error(
                child,
                "second-body",
                f"a second <{words.body}> in one template: expected one; this one is not read",
            )
        elif child.tag not in ("file_info", words.body):
            _unknown(child, words.root, words, found)
    _check_text(root, found)


def _check_places(parts: Parts, body: etree._Element, words: Vocabulary, found: Findings) -> None:
    """Today's create_work fills in elements as it reads: a file_ref needs its file_info first."""
    behind = children(parts.root) if parts.root is not None else iter(())
    for info in dropwhile(lambda child: child is not body, behind):
        if info.tag != "file_info":
            continue
        text = f"<file_info> after <{words.body}>: expected before it; BOINC reads from the top"
        if words is INPUT:
            found.error(info, "file-info-late", f"{text}, and create_work refuses this")
        else:
            found.warn(info, "file-info-late", text)


def _check_children(
    element: etree._Element, allowed: Children, words: Vocabulary, found: Findings
) -> None:
    seen: set[str] = set()
    last = ""
    for child in children(element):
        name = str(child.tag)
        if name not in allowed:
            _unknown(child, str(element.tag), words, found)
            continue
        if name in ("number", "file_number"):
            found.warn(
                child,
                "deprecated",
                f"<{name}> belongs to old templates: today's BOINC ignores it, and goes by the "
                "order of the files; leave it out",
            )
        if name in seen and name not in allowed.repeated:
            found.warn(
                child,
                "repeated-element",
                f"a second <{name}> in one <{element.tag}>: expected one; programs differ in which "
                "of them they use",
            )
        seen.add(name)
        if name in allowed.ordered:
            if last and allowed.ordered.index(name) < allowed.ordered.index(last):
                found.warn(
                    child,
                    "element-order",
                    f"<{name}> after <{last}>: expected before it; the documented order is "
                    f"{', '.join(allowed.ordered)}",
                )
            else:
                last = name
    _check_text(element, found)


def _unknown(child: etree._Element, parent: str, words: Vocabulary, found: Findings) -> None:
    name = str(child.tag)
    place = words.known_in(name)
    if place:
        found.warn(
            child,
            "misplaced-element",
            f"<{name}> in <{parent}>: expected in <{place}>; BOINC does not look for it here",
        )
        return
    nearest = words.nearest(name)
    advice = f"was <{nearest}> meant?" if nearest else "leave it out"
    found.warn(
        child,
        "unknown-element",
        f"<{name}> in <{parent}> is not an element of an {words.kind}, and has no effect: {advice}",
    )


def _check_text(element: etree._Element, found: Findings) -> None:
    texts = [element.text, *(child.tail for child in element)]
    text = " ".join(" ".join(filter(None, texts)).split())
    if text:
        found.warn(
            element,
            "stray-text",
            f"text in <{element.tag}> that belongs to no element, and has no effect: "
            f"{text[:40]!r}; expected elements only",
        )
