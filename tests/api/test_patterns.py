"""Arguments, inputs and names with placeholders."""

import pickle

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api.request import job_names
from boinc_gahp.api.rows.texts import NameInBatch, Pattern, Patterns
from boinc_gahp.errors import BadRequest
from boinc_gahp.submit.types import InlineFile, Job, LocalFile

#: Names of columns: anything without braces.
names = st.text(st.characters(exclude_characters="{}"))


@given(st.text())
def test_doubled_braces_are_braces_and_nothing_else_changes(text):
    pattern = Pattern(text.replace("{", "{{").replace("}", "}}"))
    assert pattern.used([]) == set()
    assert pattern.fill({}) == text


@given(st.dictionaries(names, st.text(), max_size=4), st.text(st.characters(codec="ascii")))
def test_values_are_filled_in_once_whatever_is_in_them(values, text):
    literal = text.replace("{", "{{").replace("}", "}}")
    pattern = Pattern(literal.join(f"{{{name}}}" for name in values))
    assert pattern.used(values) == set(values)
    assert pattern.fill(values) == text.join(values.values())


@given(st.integers(), st.integers(0, 20))
def test_whole_numbers_are_filled_up_with_zeros(number, width):
    filled = Pattern(f"{{seed:{width}}}|{{seed:0{width}}}").fill({"seed": str(number)})
    assert filled == "|".join([f"{number:0{width}d}"] * 2)


@given(st.text(st.sampled_from("{}indexsd:3 ")))
def test_any_pattern_is_filled_in_or_refused(text):
    values = {"index": "1", "seed": "0.5", "n": None}
    try:
        pattern = Pattern(text)
        pattern.used(values)
        pattern.fill(values)
    except BadRequest as error:
        assert str(error)  # noqa: PT017
    else:
        assert "{" in text or "}" in text or pattern.fill(values) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "a { stands alone: write {{ for a brace"),
        ("a } b", "a } stands alone: write }} for a brace"),
        ("{sed}", "there are {seed}, {n}, {index}, and {{ for a brace; did you mean {seed}?"),
        ("{}", "{} is not a placeholder"),
        ("{seed:x}", "{seed:x} is not a placeholder"),
        ("{n}", "{n} has no value in this row: the cell is empty or missing"),
        ("{n:4}", "{n:4} has no value in this row"),
        ("{seed:4}", "{seed:4} is for whole numbers, and seed is '0.5'"),
    ],
)
def test_what_cannot_be_filled_in_is_told(text, said):
    values = {"seed": "0.5", "n": None, "index": "0"}
    with pytest.raises(BadRequest) as caught:
        _ = (Pattern(text).used(values), Pattern(text).fill(values))
    assert said in str(caught.value)


def test_a_column_may_have_any_name():
    pattern = Pattern("{learning rate} {a:4} {a:4:3}")
    assert pattern.fill({"learning rate": "1e-3", "a:4": "7"}) == "1e-3 7 007"


@given(st.text())
def test_a_value_stays_one_word(value):
    patterns = Patterns("-t '{x} y' {x}")
    assert patterns.args({"x": value}) == ("-t", f"{value} y", value)


def test_words_of_a_list_may_be_numbers_and_are_patterns():
    patterns = Patterns(["--seed", "{seed}", "-n", 5, "{{a b}}"])
    assert patterns.args({"seed": "1"}) == ("--seed", "1", "-n", 5, "{a b}")


def test_inputs_are_as_on_the_command_line():
    patterns = Patterns(inputs={"a": "inline:{x}", "b": "{{c}}", "d": LocalFile("{e}")})
    assert patterns.inputs({"x": "{y}"}) == {
        "a": InlineFile("{y}"),
        "b": LocalFile("{c}"),
        "d": LocalFile("{e}"),
    }


def test_the_name_of_the_batch_is_known_when_jobs_are_submitted():
    patterns = Patterns(name="{batch}_{seed:3}{batch}")
    jobs = [Job(name=patterns.name({"seed": seed})) for seed in ("1", "{batch}2") if seed == "1"]
    assert job_names("my sweep/1", jobs) == ["my_sweep_1_001my_sweep_1"]
    literal = Patterns(name="{batch}_{seed}").name({"seed": "{batch}"})
    assert job_names("b", [Job(name=literal), Job(name="{batch}")]) == ["b_{batch}", "{batch}"]
    known = Patterns("{batch}", None, "{batch}-{seed}", "my sweep")
    values = {"batch": "my sweep", "seed": "1"}
    assert (known.args(values), known.name(values)) == (("my sweep",), "my_sweep-1")


def test_only_a_name_may_have_the_name_of_a_batch_that_is_not_known():
    assert Patterns(name="{batch}").used(["batch"]) == {"batch"}
    for patterns in (Patterns("{batch}"), Patterns(inputs={"in": "{batch}"})):
        with pytest.raises(BadRequest, match="only name may have it"):
            patterns.used(["batch"])


def test_a_name_that_waits_for_its_batch_can_be_pickled():
    name = NameInBatch("", "_1")
    copy = pickle.loads(pickle.dumps(name))
    assert (copy, copy.within("b")) == ("{batch}_1", "b_1")
