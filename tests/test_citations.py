"""What docstrings, comments and documents cite is there: pages, sections, recordings, code.

``web-rpcs.rst``, "Queries" is a section of ``docs/internals/web-rpcs.rst``; a name with a
directory, or of a document in the root, is a path. ``wire/NAME`` is a recording in
``tests/contract/wire``; :mod:`boinc_gahp.text` is a module, and other roles name what it has.
"""

import pkgutil
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "internals"
WIRE = ROOT / "tests" / "contract" / "wire"

#: What is read. The recordings are another program's words.
READ = ("boinc_gahp", "tests", "scripts", "conf", "docs", "*.rst", "*.toml", "*.cfg", "MANIFEST.in")

#: Between two words: blanks, or a line's end and what begins a line of a comment.
GAP = r"(?:[ \t]|\n[ \t]*(?:#:?)?[ \t]*)+"
_DOCUMENT = r"(?<![\w./*-])(?P<document>(?:[\w.*-]+/)*[\w*-]+\.rst)\b"
_SECTIONS = (
    rf',{GAP}(?P<sections>"[^"]+"(?:(?:,|{GAP}and){GAP}"[^"]+")*)(?:,{GAP}(?P<number>\d+)\b)?'
)
#: A document between backquotes, with or without sections, or without backquotes, with sections.
CITATION = re.compile(rf"(?P<quotes>``)?{_DOCUMENT}(?(quotes)``)(?:{_SECTIONS}|(?(quotes)|(?!)))")
#: A number after the name of a document says nothing to who has no numbers in it.
BARE_NUMBER = re.compile(rf"([\w-]+\.rst)``,{GAP}\d+\b")
#: Documents that are not part of the repository.
FOREIGN = re.compile(r"(?<![\w./-])(?:[\w-]+\.md\b|seeds/\d+)")
RECORDING = re.compile(r"(?<![\w-])wire/(?P<name>[\w*]+(?:\.\w+)*)")
#: A module, or what one has, by its whole name.
CODE = re.compile(r":(?:mod|class|func|meth|data):`[!~]?(?P<name>boinc_gahp\.[\w.]+)`")

UNDERLINE = re.compile(r"([=~^-])\1{2,}")


@cache
def sections(page):
    """The titles of a document's sections, each with the largest number of its numbered list."""
    found = {}
    lines = page.read_text("utf-8").splitlines()
    title = ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if (
            line.strip() == line != ""
            and UNDERLINE.fullmatch(following)
            and len(following) >= len(line)
            and not UNDERLINE.fullmatch(line)
        ):
            title = line
            found[title] = 0
        elif match := re.match(r"(\d+)\. ", line):
            found[title] = max(found.get(title, 0), int(match[1]))
    return found


def documents(name):
    """The documents that a name stands for; with ``*`` it can be several."""
    places = [ROOT] if "/" in name else [ROOT, PAGES]
    return [path for place in places for path in sorted(place.glob(name))]


def flat(text):
    """Return a text that stands on several lines as one line."""
    return re.sub(GAP, " ", text)


def problems(text, where):
    """What a text cites that is not there."""
    found = []
    for match in CITATION.finditer(text):
        cited = documents(match["document"])
        if not cited:
            found.append((match.start(), f"there is no {match['document']}"))
        titles = re.findall(r'"([^"]+)"', flat(match["sections"] or ""))
        found += [
            (match.start(), f"{match['document']} has no section {title!r}")
            for title in titles
            if cited and not any(title in sections(path) for path in cited)
        ]
        if match["number"] and cited:
            most = max(sections(path).get(titles[-1], 0) for path in cited)
            if int(match["number"]) > most:
                found.append((match.start(), f"{titles[-1]!r} has no number {match['number']}"))
    found += [(each.start(), f"{each[1]} has no numbers") for each in BARE_NUMBER.finditer(text)]
    found += [
        (each.start(), f"{each[0]} is not in the repository") for each in FOREIGN.finditer(text)
    ]
    found += [
        (each.start(), f"there is no recording {each['name']}")
        for each in RECORDING.finditer(text)
        if each["name"] != "NAME"
        and not any(WIRE.glob(each["name"]))
        and not any(WIRE.glob(f"{each['name']}.*"))
    ]
    found += [
        (each.start(), f"there is no {each['name']}")
        for each in CODE.finditer(text)
        if not is_code(each["name"])
    ]
    return [f"{where}:{text.count(chr(10), 0, at) + 1}: {what}" for at, what in found]


def is_code(name):
    """Tell whether a module, or what it has, is called so."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def texts():
    """Every text of the repository that may cite, by path."""
    found = {}
    for top in (top for pattern in READ for top in ROOT.glob(pattern)):
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if not path.is_file() or path.is_relative_to(WIRE):
                continue
            # Pictures and compiled modules are no text.
            with suppress(UnicodeDecodeError):
                found[name] = path.read_text("utf-8")
    return found


def test_what_is_cited_is_there():
    found = [each for name, text in texts().items() for each in problems(text, name)]
    assert found == []


def test_every_page_of_internals_is_cited():
    cited = {
        match["document"]
        for name, text in texts().items()
        if name.endswith(".py")
        for match in CITATION.finditer(text)
    }
    pages = {path.name for path in PAGES.glob("*.rst")} - {"index.rst"}
    assert pages - cited == set()
