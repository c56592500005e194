"""Jobs out of tables of parameters: files, mappings, DataFrames."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from boinc_gahp import Job, LocalFile, StagedFile, jobs_from
from boinc_gahp.api.request import job_names
from boinc_gahp.errors import BadRequest


@pytest.fixture
def file(tmp_path):
    def file(name, text):
        path = tmp_path / name
        path.write_text(text)
        return path

    return file


def test_the_columns_of_a_csv_file_are_placeholders(file, tmp_path):
    path = file("params.csv", "seed,n,path,tag\n1,0.10,a.txt,two words\n2,1e3,/b.txt,{seed}\n")
    jobs = jobs_from(
        path,
        args="--seed {seed} -n {n} '{tag}'",
        inputs={"in": "{path}", "cal": "cal/{seed:3}.dat", "all": "x.txt", "n": "{index}.txt"},
        name="{batch}_{seed:3}",
    )
    assert jobs == [
        Job(
            ("--seed", "1", "-n", "0.10", "two words"),
            {
                "in": LocalFile(f"{tmp_path}/a.txt"),
                "cal": LocalFile(f"{tmp_path}/cal/001.dat"),
                "all": LocalFile("x.txt"),
                "n": LocalFile("0.txt"),
            },
            "{batch}_001",
            parameters={"seed": 1, "n": 0.1, "path": "a.txt", "tag": "two words"},
        ),
        Job(
            ("--seed", "2", "-n", "1e3", "{seed}"),
            {
                "in": LocalFile("/b.txt"),
                "cal": LocalFile(f"{tmp_path}/cal/002.dat"),
                "all": LocalFile("x.txt"),
                "n": LocalFile("1.txt"),
            },
            "{batch}_002",
            parameters={"seed": 2, "n": 1000.0, "path": "/b.txt", "tag": "{seed}"},
        ),
    ]
    assert job_names("sweep", jobs) == ["sweep_001", "sweep_002"]


@pytest.mark.parametrize(
    "text",
    [
        '{"seed": 1, "n": 0.10, "on": true, "tag": null}\n',
        '[{"seed": 1, "n": 0.10, "on": true, "tag": null}]',
    ],
)
def test_json_keeps_types_and_numbers_as_they_were_written(file, text):
    (job,) = jobs_from(file("params.json", text), args="{seed} {n} {on}")
    assert job.args == ("1", "0.10", "true")
    assert job.parameters == {"seed": 1, "n": 0.1, "on": True, "tag": None}
    assert list(map(type, job.parameters.values())) == [int, float, bool, type(None)]


def test_texts_that_look_like_numbers_only_partly_stay_texts(file):
    cells = ["007", "1_000", "+5", ".5", "1e999", "nan", "٣", "9" * 5000, "-"]
    table = file("params.csv", "x,y\n" + "".join(f"{cell},\n" for cell in cells))
    assert [job.parameters["x"] for job in jobs_from(table)] == cells


def test_what_a_row_says_of_its_job_wins_and_is_recorded(file):
    names = ("seed", "name", "memory", "disk", "delay", "fpops", "priority")
    cells = (1, "me", "2GB", "500kB", "2d", "2T", 3)
    path = file(
        "params.csv",
        f"{','.join(names)},input:in\n{','.join(map(str, cells))},staged:x\n2,,,,,,,\n",
    )
    first, second = jobs_from(path, inputs={"in": "staged:{seed}"}, name="{batch}_{seed}")
    assert first == Job(
        inputs={"in": StagedFile("x")},
        name="me",
        priority=3,
        fpops=2e12,
        memory=2e9,
        disk=500_000,
        delay=172800,
        parameters=dict(zip(names, cells, strict=True)),
    )
    assert second.name == "{batch}_2"
    assert second.parameters == {**dict.fromkeys(names), "seed": 2}


def test_a_column_can_be_taken_as_a_parameter_only():
    row = {"name": "ada", "memory": 3, "delay": "2d"}
    (job,) = jobs_from([row], args="{name} {memory}", as_data=["name", "memory"])
    assert (job.args, job.name, job.memory, job.delay) == (("ada", "3"), None, None, 172800)
    with pytest.raises(BadRequest, match="say --as-data name"):
        jobs_from([row], args="{name}")
    with pytest.raises(BadRequest, match="no column 'nam' to take as data; did you mean name"):
        jobs_from([row], as_data=["nam"])


class Polars:
    """As a DataFrame of polars, which not everybody has."""

    def __init__(self, rows):
        self.to_dicts = lambda: rows


@pytest.mark.parametrize("kind", [pd.DataFrame, Polars, iter])
def test_mappings_and_frames_have_plain_numbers_and_empty_cells(kind):
    rows = [
        {"x": np.float64(0.5), "y": math.nan, "name": None, "memory": "2GB"},
        {"x": Fraction(1, 2), "y": Path("a.txt"), "name": "n", "memory": math.nan},
        {"x": True, "y": "", "name": "", "memory": 5e8},
    ]
    jobs = jobs_from(kind(rows), args=["{x}"])
    assert [job.args for job in jobs] == [("0.5",), ("0.5",), ("True",)]
    assert [repr(job.parameters) for job in jobs] == [
        "{'x': 0.5, 'y': None, 'name': None, 'memory': '2GB'}",
        "{'x': 0.5, 'y': 'a.txt', 'name': 'n', 'memory': None}",
        "{'x': True, 'y': None, 'name': None, 'memory': 500000000.0}",
    ]
    assert [(job.name, job.memory) for job in jobs] == [(None, 2e9), ("n", None), (None, 5e8)]


def test_numbers_of_numpy_are_plain_numbers():
    row = {"i": np.int64(3), "f": np.float32(0.1), "d": np.float64(0.1), "b": np.bool_(True)}
    (job,) = jobs_from([row], args="{i} {f} {d} {b}")
    assert job.args == ("3", "0.1", "0.1", "True")
    assert repr(job.parameters) == "{'i': 3, 'f': 0.1, 'd': 0.1, 'b': True}"


def test_frames_of_pandas_are_tables_themselves_and_as_json(tmp_path):
    frame = pd.DataFrame({"seed": [1, 2], "x": [0.5, None], "t": ["a", pd.NA]})
    first, second = jobs_from(frame, args="{seed}")
    assert (first.parameters, second.parameters) == (
        {"seed": 1, "x": 0.5, "t": "a"},
        {"seed": 2, "x": None, "t": None},
    )
    frame.to_json(tmp_path / "t.json", orient="records")
    assert jobs_from(tmp_path / "t.json", args="{seed}") == [first, second]


def test_rows_in_python_may_have_lists_files_and_inputs_by_name():
    row = {
        "args": ["-n", 5, Path("p")],
        "inputs": {"a": Path("x"), "b": {"staged": "s"}},
        "input:c": LocalFile("y"),
        "input:d": "inline:z",
    }
    (job,) = jobs_from([row])
    assert job.args == ("-n", "5", "p")
    assert {name: repr(file) for name, file in job.files.items()} == {
        "a": "LocalFile(path='x', expected=None)",
        "b": "StagedFile(physical_name='s')",
        "c": "LocalFile(path='y', expected=None)",
        "d": "InlineFile(text='z')",
    }


@pytest.mark.parametrize(
    ("rows", "more", "said"),
    [
        ([{"seed": 1}], {"args": "{sed}"}, "rows[0]: {sed} is not a placeholder; there are {seed}"),
        ([{"seed": 1}, {"seed": None}], {"args": "{seed}"}, "rows[1]: {seed} has no value in this"),
        ([{"seed": 1}, {"n": 1}], {"args": "{seed}"}, "rows[1]: {seed} is not a placeholder"),
        ([{"seed": math.nan}], {"name": "{seed}"}, "rows[0]: {seed} has no value"),
        ([{"seed": [1]}], {}, "rows[0]: 'seed': expected text, a number, true or false"),
        ([{"args": "-x"}], {"args": "-y"}, "there is a column args, and arguments for all rows"),
        ([{"index": 1}], {"args": "{index}"}, "{index} is what boinc_gahp calls the number of a"),
        ([{"batch": 1}], {"name": "{batch}"}, "{batch} is what boinc_gahp calls the name of the b"),
        ([{"prioriy": 1}], {}, "rows[0]: column 'prioriy' is neither"),
        ([{5: 1}], {}, "a column is called 5: expected a text"),
        ([{"args": [None]}], {}, "args: expected strings or numbers, found null"),
        ([{"args": 5}], {}, "args: expected a string"),
        ([{"inputs": 5}], {}, "inputs: expected an object"),
        ([5], {}, "rows[0] is a int: expected a mapping"),
        (5, {}, "rows is a int: expected a path, a list of mappings, or a DataFrame"),
        ({"seed": [1, 2]}, {}, "rows is a dict: expected"),
        ([], {"args": "a 'b"}, "a quote is not closed"),
        ([], {"name": "{"}, "a { stands alone"),
    ],
)
def test_what_is_wrong_in_python_is_told_by_the_number_of_the_row(rows, more, said):
    with pytest.raises(BadRequest) as caught:
        jobs_from(rows, **more)
    assert said in str(caught.value)


@pytest.mark.parametrize("column", ["prioriy", "decay", "arg", "imput:in"])
def test_a_column_that_a_placeholder_uses_may_have_any_name(column):
    (job,) = jobs_from([{column: 1}], args=f"{{{column}}}")
    assert (job.args, job.parameters) == (("1",), {column: 1})


@pytest.mark.parametrize(
    "column", ["seed", "n", "x", "rate", "dist", "game", "time", "mass", "temp", "path", "frame"]
)
def test_parameters_that_only_look_a_little_like_other_columns_are_kept(column):
    assert jobs_from([{column: 1}])[0].parameters == {column: 1}


def test_a_wrong_cell_is_told_by_file_and_line(file):
    path = file("params.csv", "seed,n\n1,2\n\n3,\n")
    with pytest.raises(BadRequest, match=r"params\.csv:4: \{n\} has no value in this row"):
        jobs_from(path, args="{seed} {n}")
    with pytest.raises(BadRequest, match=r"params\.csv:1: \{m\} is not a placeholder; .* \{n\}"):
        jobs_from(path, args="{m}")
