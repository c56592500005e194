"""What is public, a line for each name, read off the tables and pages that already have it."""

from __future__ import annotations

import inspect
import re
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.api.outputs import records
from boinc_gahp.api.programs import ProgramKeywords
from boinc_gahp.api.request import Options
from boinc_gahp.gahp.commands import COMMANDS
from boinc_gahp.htcondor.attributes import BOINC
from boinc_gahp.htcondor.status_ad import HoldCode
from boinc_gahp.terminal.parsing import STATUSES
from boinc_gahp_docs import api, commands, environment, jsons, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
#: The names that are public; before those that went since the last release stands :data:`GONE`.
LIST = ROOT / "docs/reference/public.txt"
GONE = "gone: "

#: Keywords of functions that take many.
_KEYWORDS = {each.__name__: each for each in (Options, ProgramKeywords)}
#: Tables of metrics and of error codes.
_ROW = re.compile(r"^   \* - ``\[?(boinc_gahp_\w+|BG-[A-Z-]+)\]?``$", re.MULTILINE)
#: Options of Snakemake, which is not installed where the list is compared.
_SNAKEMAKE = re.compile(r"--boinc-[a-z-]+")
_IMPORT = re.compile(r"^ *from (boinc_gahp(?:\.\w+)*) import (\w+(?:, \w+)*)$", re.MULTILINE)


def names() -> list[str]:
    """Return all lines of the list, in its order."""
    return sorted({*_command_line(), *_python(), *_of_pages(), *_of_htcondor(), *_of_files()})


def _command_line() -> Iterator[str]:
    for parser in commands.parsers():
        yield f"command {parser.prog}"
        for status in parser.statuses.keys() - STATUSES.keys():
            yield f"exit status {parser.prog} {status}"
        for word in commands.option_strings(parser):
            kind = "option" if word.startswith("-") else "argument"
            yield f"{kind} {parser.prog} {word}"
    yield from (f"exit status boinc_gahp {status}" for status in STATUSES)


def _python() -> Iterator[str]:
    for module in api.MODULES:
        for name in api.names(module):
            value = getattr(import_module(module), name)
            place = f"python {module}.{name}"
            yield place
            yield from _parameters(place, value)
            for member in sorted({*dir(value), *_fields(value)}) if inspect.isclass(value) else ():
                if not member.startswith("_") and _owner(value, member) is value:
                    yield f"{place}.{member}"
                    yield from _parameters(f"{place}.{member}", getattr(value, member, None))


def _parameters(place: str, value: object) -> Iterator[str]:
    for name, each in (
        inspect.signature(value).parameters.items() if inspect.isroutine(value) else ()
    ):
        unpacked = re.fullmatch(r"Unpack\[(\w+)\]", str(each.annotation))
        found = _KEYWORDS[unpacked[1]].__annotations__ if unpacked else {name}
        yield from (f"{place}({keyword})" for keyword in found if keyword not in {"self", "cls"})


def _fields(value: type) -> set[str]:
    return set(getattr(value, "__dataclass_fields__", ()))


def _owner(value: type, member: str) -> type | None:
    """Return the class that describes a member: a base, if that is public, too."""
    classes = [each for each in value.__mro__ if member in vars(each) or member in _fields(each)]
    if not classes or not classes[-1].__module__.startswith("boinc_gahp"):
        return None
    public = [each for each in classes if each.__name__ in api.names(each.__module__)]
    return public[-1] if public else value


def _of_pages() -> Iterator[str]:
    for page in [*ROOT.glob("docs/*.rst"), ROOT / "README.rst"]:
        text = page.read_text("utf-8")
        for name in _ROW.findall(text):
            yield f"{'error code' if name.startswith('BG-') else 'metric'} {name}"
        for module, imported in _IMPORT.findall(text):
            yield from (f"python {module}.{name}" for name in imported.split(", "))
        yield from (f"option snakemake {word}" for word in _SNAKEMAKE.findall(text))
    for action, keys in jsons.documented(ROOT / "docs/reference/json.rst").items():
        yield from (f"JSON {action}: {key}" for key in keys)
    for section, members in settings.sections().items():
        yield from (f"setting [{section}] {each.key}" for each in members)
    yield from (f"variable {name}" for name in environment.variables())


def _of_htcondor() -> Iterator[str]:
    yield from (f"GAHP command {name}" for name in COMMANDS)
    yield from (f"HoldReasonCode {int(code)}" for code in HoldCode)
    yield from (f"job attribute Boinc{name}" for name in BOINC)


def _of_files() -> Iterator[str]:
    columns = (records.FIRST, records.ARGS, "input:NAME", "md5:NAME", *records.LAST)
    yield from (f"column jobs.csv {name}" for name in columns)
    yield from (f"file conf/{each.name}" for each in (ROOT / "conf").iterdir() if each.is_file())
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = setup["options.extras_require"].keys() - {"docs", "test"}
    yield from (f"extra {name}" for name in extras)
