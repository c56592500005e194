"""The completion script for bash."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.cli.shells import ShellCommand, Value

_BASH = r"""# bash completion for boinc_gahp; boinc_gahp completion bash prints it.
# @LISTS@
_boinc_gahp_ask() {
    local -a settings=()
    [[ -z $config ]] || settings+=(--config "$config")
    [[ -z $project || $1 != --batches ]] || settings+=(--project "$project")
    local line
    while IFS= read -r line; do
        line=${line%%$'\t'*}
        [[ $line == "$whole"* ]] || continue
        line=${line#"$head"}
        [[ $quote ]] || printf -v line %q "$line"
        COMPREPLY+=("$line")
    done < <("$program" completion "${settings[@]}" "$1=$whole" 2>/dev/null)
}

_boinc_gahp_complete() {
    local value=$1 head= quote= whole=${current//\\/}
    [[ $whole != [\"\']* ]] || quote=${whole:0:1} whole=${whole:1}
    # bash puts what it gets in place of what follows the last of its word breaks.
    local breaks=${COMP_WORDBREAKS//[^=:]/} last
    if [[ -n $breaks && $current == *["$breaks"]* ]]; then
        last=${current##*["$breaks"]}
        head=${current%"$last"}
        current=$last
    fi
    case $value in
    # Nothing is found here then, and readline does it, with all that quotes and ~ need.
    file) compopt -o default ;;
    directory) compopt -o dirnames ;;
    project) _boinc_gahp_ask --projects ;;
    batch) _boinc_gahp_ask --batches ;;
    words\ *) mapfile -t COMPREPLY < <(compgen -W "${value#words }" -- "$current") ;;
    esac
}

_boinc_gahp() {
    COMPREPLY=()
    local -a typed=()
    local index word joined=
    for ((index = 0; index <= COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        if [[ $index -gt 0 && ($joined || $word =~ ^[=:]+$) ]]; then
            typed[${#typed[@]}-1]+=$word
        else
            typed+=("$word")
        fi
        [[ $word =~ ^[=:]+$ ]] && joined=1 || joined=
    done
    local program=${typed[0]/#\~/$HOME} current=${typed[${#typed[@]}-1]}
    local command= position=0 left=0 option= plain= config= project=
    local options actions number value
    for word in "${typed[@]:1:${#typed[@]}-2}"; do
        if ((left > 0)) && [[ $left -lt 1000 || $word != -* ]]; then
            left=$((left - 1))
            [[ $option != --config ]] || config=${word/#\~/$HOME}
            [[ $option != --project ]] || project=$word
        elif left=0; [[ $plain || $word != -?* ]]; then
            _boinc_gahp_lists "$command"
            if [[ " $actions " == *" $word "* ]]; then
                command=${command:+$command }$word
            else
                position=$((position + 1))
            fi
        elif [[ $word == -- ]]; then
            plain=1
        elif [[ $word == --config=* ]]; then
            config=${word#*=}
        elif [[ $word == --project=* ]]; then
            project=${word#*=}
        elif [[ $word != *=* ]]; then
            _boinc_gahp_value "$command:$word"
            left=$number option=$word
        fi
    done
    _boinc_gahp_lists "$command"
    if ((left > 0)) && [[ $left -lt 1000 || $current != -* ]]; then
        _boinc_gahp_value "$command:$option"
        _boinc_gahp_complete "$value"
    elif [[ ! $plain && $current == --*=* ]]; then
        _boinc_gahp_value "$command:${current%%=*}"
        current=${current#*=}
        _boinc_gahp_complete "$value"
    elif [[ ! $plain && $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
    elif [[ $actions ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$actions" -- "$current")
    else
        _boinc_gahp_value "$command:$position"
        _boinc_gahp_complete "$value"
    fi
}

complete -F _boinc_gahp boinc_gahp
"""


#: More values than anybody gives an option that takes any number.
_ALL = 9999


def script(commands: list[ShellCommand]) -> str:
    """Return the script for bash 4 and later."""
    lines = ["_boinc_gahp_lists() {", "    options= actions=", "    case $1 in"]
    for each in commands:
        options = " ".join(string for option in each.options for string in option.strings)
        lines.append(f"    {shlex.quote(each.words)})")
        lines.append(f"        options={shlex.quote(options)}")
        lines.append(f"        actions={shlex.quote(' '.join(each.children))} ;;")
    lines += ["    esac", "}", "", "_boinc_gahp_value() {", "    number=0 value=", "    case $1 in"]
    for each in commands:
        lines += _bash_values(each)
    lines += ["    esac", "}", ""]
    return _BASH.replace("# @LISTS@\n", "\n" + "\n".join(lines) + "\n")


def _bash_values(command: ShellCommand) -> Iterator[str]:
    for option in command.options:
        if option.values and not option.optional:
            patterns = "|".join(shlex.quote(f"{command.words}:{each}") for each in option.strings)
            number = _ALL if option.many else option.values
            yield f"    {patterns}) number={number} value={_bash_value(option.value)} ;;"
    for place, each in enumerate(command.places):
        pattern = shlex.quote(f"{command.words}:{place}")
        if each.many:
            pattern = f"{shlex.quote(f'{command.words}:')}[0-9]*"
        yield f"    {pattern}) value={_bash_value(each.value)} ;;"


def _bash_value(value: Value) -> str:
    return shlex.quote(f"words {' '.join(value.words)}" if value.kind == "words" else value.kind)
