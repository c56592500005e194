"""The completion script for zsh."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.cli.shells import Option, ShellCommand, Value

_ZSH = r"""#compdef boinc_gahp
# zsh completion for boinc_gahp; boinc_gahp completion zsh prints it.

_boinc_gahp_ask() {
    local -a settings lines found
    local line word
    local project=${(Q)opt_args[--project]}
    local file=${(Q)${opt_args[--config]:-$config}}
    [[ -z $file ]] || settings+=(--config ${file/#\~/$HOME})
    [[ -z $project || $1 != --batches ]] || settings+=(--project $project)
    lines=(${(f)"$($program completion $settings "$1=${(Q)PREFIX}" 2>/dev/null)"})
    for line in $lines; do
        word=${line%%$'\t'*}
        found+=("${word//:/\\:}:${line#*$'\t'}")
    done
    _describe -t ${1#--} ${1#--} found
}
_boinc_gahp_projects() { _boinc_gahp_ask --projects }
_boinc_gahp_batches() { _boinc_gahp_ask --batches }
_boinc_gahp_files() { compset -P '[^/]#='; _files }

"""

_ZSH_END = r"""if [[ $funcstack[1] = _boinc_gahp ]]; then
    _boinc_gahp "$@"
else
    compdef _boinc_gahp boinc_gahp
fi
"""


def script(commands: list[ShellCommand]) -> str:
    """Return the script for zsh, for a file ``_boinc_gahp`` in its ``fpath`` or to be sourced."""
    text = _ZSH
    for each in reversed(commands):
        specs = [spec for option in each.options for spec in _zsh_option(option)]
        if not each.children:
            for number, place in enumerate(each.places, 1):
                where = "*" if place.many else str(number)
                specs.append(
                    f"'{where}:{_zsh_text(place.value.metavar)}:{_zsh_value(place.value)}'"
                )
            text += f"{each.function}() {{\n    _arguments -s -S{_zsh_lines(specs)}\n}}\n\n"
            continue
        described = "".join(
            f"\n        '{name}:{_zsh_quoted(help_text)}'"
            for name, help_text in each.children.items()
        )
        specs += [f"'1: :{each.function}_actions'", "'*:: :->rest'"]
        inner = "".join(
            f"\n    {name}) {each.function}_{name.replace('-', '_')} ;;" for name in each.children
        )
        start = "" if each.path else "    local program=${words[1]/#\\~/$HOME} config\n"
        keep = "" if each.path else "    config=${opt_args[--config]}\n"
        text += (
            f"{each.function}_actions() {{\n    local -a found=({described}\n    )\n"
            "    _describe -t commands command found\n}\n\n"
            f"{each.function}() {{\n    local context state state_descr line\n"
            f"    typeset -A opt_args\n{start}"
            f"    _arguments -C{_zsh_lines(specs)}\n"
            f"    [[ $state = rest ]] || return\n{keep}"
            f"    case $line[1] in{inner}\n    esac\n}}\n\n"
        )
    return text + _ZSH_END


def _zsh_lines(specs: list[str]) -> str:
    return "".join(f" \\\n        {spec}" for spec in specs)


def _zsh_option(option: Option) -> Iterator[str]:
    value = option.value
    said = f"[{_zsh_text(option.help)}]"
    mark = "::" if option.optional else ":"
    each_value = f"{mark}{_zsh_text(value.metavar)}:{_zsh_value(value)}" * option.values
    for string in option.strings:
        star = "*" if option.repeats else ""
        equals = (
            "="
            if option.values == 1 and not (option.optional or option.many) and len(string) > 2
            else ""
        )
        others = f"({' '.join(option.strings)})" if len(option.strings) > 1 else ""
        yield f"'{others}{star}{string}{equals}{said}{each_value}'"


def _zsh_value(value: Value) -> str:
    kinds = {
        "file": "_boinc_gahp_files",
        "directory": "_files -/",
        "project": "_boinc_gahp_projects",
        "batch": "_boinc_gahp_batches",
        "words": f"({' '.join(value.words)})",
    }
    return kinds.get(value.kind, " ")


def _zsh_quoted(text: str) -> str:
    return text.replace("'", "'\\''")


def _zsh_text(text: str) -> str:
    return _zsh_quoted(re.sub(r"([\[\]:\\])", r"\\\1", text))
