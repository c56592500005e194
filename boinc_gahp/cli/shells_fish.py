"""The completion script for fish."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.cli.shells import Option, ShellCommand, Value

_FISH = r"""# fish completion for boinc_gahp; boinc_gahp completion fish prints it.

# @LISTS@
function __boinc_gahp_read
    set -g __boinc_gahp_command
    set -g __boinc_gahp_position 0
    set -g __boinc_gahp_settings
    set -g __boinc_gahp_project
    set -l typed (commandline -opc)
    set -l option
    for word in $typed[2..-1]
        if test -n "$option"
            switch $option
                case --config
                    set __boinc_gahp_settings --config (string replace -r '^~' $HOME -- $word)
                case --project
                    set __boinc_gahp_project --project $word
            end
            set option
        else if string match -q -- '--config=*' $word
            set __boinc_gahp_settings --config (string replace -- '--config=' '' $word)
        else if string match -q -- '--project=*' $word
            set __boinc_gahp_project --project (string replace -- '--project=' '' $word)
        else if string match -q -- '-*' $word
            __boinc_gahp_takes "$__boinc_gahp_command" $word; and set option $word
        else if contains -- $word (__boinc_gahp_actions "$__boinc_gahp_command")
            set __boinc_gahp_command (string trim "$__boinc_gahp_command $word")
        else
            set __boinc_gahp_position (math $__boinc_gahp_position + 1)
        end
    end
end

function __boinc_gahp_at
    __boinc_gahp_read
    test "$__boinc_gahp_command" = "$argv[1]"
    or return 1
    test (count $argv) = 1
    or test $__boinc_gahp_position = $argv[2]
    or test (count $argv) = 3 -a $__boinc_gahp_position -ge $argv[2]
end

function __boinc_gahp_ask
    __boinc_gahp_read
    set -l program (commandline -opc)[1]
    set -l settings $__boinc_gahp_settings
    test $argv[1] = --batches; and set -a settings $__boinc_gahp_project
    set -l typed (commandline -ct | string unescape | string replace -r '^--[^=]*=' '')
    command $program completion $settings $argv[1]="$typed" 2>/dev/null
end

complete -c boinc_gahp -f
"""


def script(commands: list[ShellCommand]) -> str:
    """Return the script for fish 3 and later."""
    taking, actions = [], []
    lines = []
    for each in commands:
        strings = [
            string
            for option in each.options
            if option.values and not option.optional
            for string in option.strings
        ]
        words = _fish(each.words)
        taking.append(
            f"        case {words}\n            contains -- $argv[2] {' '.join(strings)}\n"
        )
        if each.children:
            names = " ".join(each.children)
            actions.append(f"        case {words}\n            string split ' ' '{names}'\n")
        for name, text in each.children.items():
            lines.append(f"{_fish_line(each.words)} -a {_fish(name)} -d {_fish(text)}")
        lines += [line for option in each.options for line in _fish_option(each, option)]
        for number, place in enumerate(each.places):
            where = f"{number} on" if place.many else str(number)
            value = _fish_value(place.value)
            lines += [f"{_fish_line(each.words, where)}{value}"] * bool(value)
    functions = (
        f"function __boinc_gahp_takes\n    switch $argv[1]\n{''.join(taking)}    end\nend\n\n"
        f"function __boinc_gahp_actions\n    switch $argv[1]\n{''.join(actions)}    end\nend\n"
    )
    return _FISH.replace("# @LISTS@\n", functions + "\n") + "\n".join(lines) + "\n"


def _fish_line(words: str, place: str = "") -> str:
    condition = f"__boinc_gahp_at {_fish(words)} {place}".strip()
    return f"complete -c boinc_gahp -n {_fish(condition)}"


def _fish_option(command: ShellCommand, option: Option) -> Iterator[str]:
    said = "".join(
        f" -l {string[2:]}" if string.startswith("--") else f" -s {string[1:]}"
        for string in option.strings
    )
    if option.values and not option.optional:
        shown = _fish_value(option.value)
        said += (shown if shown.startswith(" -F") else f" -x{shown}") + (
            " -r" if shown.startswith(" -F") else ""
        )
    yield f"{_fish_line(command.words)}{said} -d {_fish(option.help)}"


def _fish_value(value: Value) -> str:
    kinds = {
        "file": " -F",
        "directory": " -a '(__fish_complete_directories)'",
        "project": " -a '(__boinc_gahp_ask --projects)'",
        "batch": " -k -a '(__boinc_gahp_ask --batches)'",
        "words": f" -a {_fish(' '.join(value.words))}",
    }
    return kinds.get(value.kind, "")


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
