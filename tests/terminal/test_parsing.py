import re
import shlex

import pytest

from boinc_gahp.terminal.parsing import Group, Parser, kind_of
from boinc_gahp.text import did_you_mean


def make():
    parser = Parser("batch frob", "Frobs.", examples=("boinc_gahp batch frob x",))
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--colour", choices=("red", "green"))
    return parser.with_common(project=True, json="print JSON")


def make_group():
    actions = {"list": ("m", "f", "list them"), "show": ("m", "f", "show one")}
    return Group("g", "D.", actions, package="p")


def complaint(parser, capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        parser.read(arguments)
    assert left.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("--jsno", " did you mean --json?"),
        ("--proyect=astro", " did you mean --project?"),
        ("--Config", " did you mean --config?"),
        ("--qqq", ""),
        # It is not guessed from its beginning.
        ("--js", " did you mean --json?"),
    ],
)
def test_a_wrong_option_gets_the_nearest(said, meant, capsys):
    assert complaint(make(), capsys, said) == (
        f"boinc_gahp batch frob: unrecognized arguments: {said};{meant} "
        "boinc_gahp batch frob --help tells more\n"
    )


def test_a_wrong_choice_gets_the_nearest(capsys):
    assert "; did you mean green? " in complaint(make(), capsys, "--colour", "greeen")


def test_options_may_stand_among_the_other_arguments():
    options = make().read(["a", "--json", "b", "--project", "astro", "c"], "mine.toml")
    assert (options.files, options.json, options.project) == (["a", "b", "c"], True, "astro")
    assert options.config == "mine.toml"
    assert make().read(["--config", "other.toml"], "mine.toml").config == "other.toml"


def test_what_an_argument_is_can_be_asked():
    kinds = {action.dest: kind_of(action) for action in make()._actions}
    assert kinds["files"] == "file"
    assert kinds["project"] == "project"
    assert kinds["json"] is None


def test_help_shows_examples_and_all_exit_statuses():
    text = Parser("x", "D.", examples=("boinc_gahp x",), statuses={3: "some failed"}).format_help()
    assert "\nexamples:\n  boinc_gahp x\n" in text
    assert "\nexit status:\n  0    success\n" in text
    assert "\n  3    some failed\n  130  interrupted" in text


def test_a_long_example_is_broken_where_a_shell_reads_it_as_one_line():
    long = f"boinc_gahp x --colour 'dark red' --file {'f' * 50} --other 'some more words' end"
    shown = Parser("x", "D.", examples=(long,)).format_help()
    broken = shown.partition("examples:\n")[2].partition("\n\n")[0]
    assert all(len(line) <= 80 for line in broken.splitlines())
    assert "\n" in broken
    # An option and its value are on one line.
    assert not any(re.search(r"--[a-z]+ \\$", line) for line in broken.splitlines())
    assert shlex.split(broken.replace("\\\n", "")) == shlex.split(long)


def test_paragraphs_are_filled_and_what_is_laid_out_is_left():
    text = "A long\nparagraph.\n\nkinds:\n  one   1\n  two   2"
    assert Parser("x", text).description == "A long paragraph.\n\nkinds:\n  one   1\n  two   2"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "an action is missing: list, show"),
        (["lits"], "there is no action 'lits'; did you mean list? boinc_gahp g --help"),
        (["ps"], "there is no action 'ps'; did you mean list? boinc_gahp g --help"),
        (["frob"], "there is no action 'frob' (there are list, show); boinc_gahp g --help"),
        (["--json", "list"], "--json comes before the action; options must come after it"),
    ],
    ids=["none", "nearest", "of others", "unlike", "option"],
)
def test_a_group_says_what_there_is(arguments, said, capsys):
    with pytest.raises(SystemExit) as left:
        make_group().chosen(arguments)
    assert left.value.code == 2
    assert said in capsys.readouterr().err


def test_a_group_knows_its_actions():
    assert make_group().chosen(["show", "--json"]) == "show"
    assert "  list  list them\n  show  show one\n" in make_group().format_help()


def test_the_nearest_name_is_found_whatever_its_case():
    assert did_you_mean("UPPERCAES", ["uppercase", "multi"]) == "; did you mean uppercase?"
    assert did_you_mean("x", ["uppercase"]) == ""
    assert did_you_mean("x", []) == ""
