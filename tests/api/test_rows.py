"""Jobs out of CSV and JSON lines."""

import codecs
import csv
import io
import json
import re
import shlex
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api.rows.reading import read_rows, rows_of
from boinc_gahp.errors import BadRequest, GahpError
from boinc_gahp.submit.types import InlineFile, Job, LocalFile, RemoteFile, StagedFile
from tests.api.texts import written

MD5 = "0123456789abcdef" * 2
#: Texts that a cell can hold and that are not white space at their ends.
words = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=6
).filter(lambda text: text == text.strip())
#: What CSV may take for a number.
NUMBER = re.compile("[-0-9]")
names = words.filter(lambda text: "=" not in text and not text.startswith("-"))
files = st.one_of(
    st.builds(LocalFile, words),
    st.builds(StagedFile, words),
    st.builds(InlineFile, words),
    st.builds(
        RemoteFile, st.builds("https://h/{}".format, words), st.integers(0, 10**9), st.just(MD5)
    ),
)
jobs = st.builds(
    Job,
    args=st.lists(words, max_size=3).map(tuple),
    inputs=st.dictionaries(names, files, max_size=2),
    name=words,
    priority=st.none() | st.integers(-(2**31) + 1, 2**31 - 1),
    fpops=st.none() | st.floats(1e6, 1e300),
    memory=st.none() | st.floats(1e6, 1e300),
    disk=st.none() | st.integers(10**6, 10**15),
    delay=st.none() | st.integers(60, 10**9),
    parameters=st.fixed_dictionaries(
        {
            "seed": st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
            "two words": st.none() | words.filter(lambda text: not NUMBER.match(text)),
        }
    ),
)


def rows(data, form=None, directory=""):
    return [job for _, job in rows_of(io.BytesIO(data), form, name="rows.csv", directory=directory)]


def as_csv(listed, delimiter, *, columns):
    """Write jobs as a spreadsheet would, their inputs in columns of their own or in one."""
    open_names = sorted({name for job in listed for name in job.inputs}) if columns else []
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter)
    numbered = ["priority", "fpops", "memory", "disk", "delay"]
    of_inputs = [f"input:{n}" for n in open_names] if columns else ["inputs"]
    writer.writerow(
        ["name", "args", *(each.title() for each in numbered), *of_inputs, "seed", "two words"]
    )
    for job in listed:
        said = [written(job.inputs[n]) if n in job.inputs else "" for n in open_names]
        if not columns:
            said = [shlex.join(f"{n}={written(file)}" for n, file in job.inputs.items())]
        numbers = [getattr(job, each) for each in numbered]
        writer.writerow(
            [
                job.name,
                shlex.join(job.args),
                *numbers,
                *said,
                job.parameters["seed"],
                job.parameters["two words"],
            ]
        )
    return out.getvalue()


def as_json(job):
    inputs = {}
    for name, file in job.inputs.items():
        match file:
            case LocalFile():
                inputs[name] = {"path": file.path}
            case StagedFile():
                inputs[name] = {"staged": file.physical_name}
            case InlineFile():
                inputs[name] = {"inline": file.text}
            case RemoteFile():
                inputs[name] = {"url": file.url, "size": file.nbytes, "md5": file.md5}
    row = {"name": job.name, "args": list(job.args), "inputs": inputs, "priority": job.priority}
    sizes = {each: getattr(job, each) for each in ("fpops", "memory", "disk", "delay")}
    return json.dumps({**row, **sizes, **job.parameters})


def of_any_order(job):
    data = {each: job.parameters[each] for each in ("seed", "two words")}
    return replace(job, inputs=dict(sorted(job.inputs.items())), parameters=data)


@given(st.lists(jobs, min_size=1, max_size=3), st.sampled_from(",;\t"), st.booleans())
def test_what_a_spreadsheet_writes_is_read_back(listed, delimiter, columns):
    data = as_csv(listed, delimiter, columns=columns).encode()
    for encoded in (data, codecs.BOM_UTF8 + data, data + b"\r\n\r\n"):
        assert list(map(of_any_order, rows(encoded))) == list(map(of_any_order, listed))


@given(st.lists(jobs, min_size=1, max_size=3))
def test_what_is_written_as_json_is_read_back(listed):
    for data in ("\n\n".join(map(as_json, listed)), f"\n[{','.join(map(as_json, listed))}\n ]\n"):
        assert list(map(of_any_order, rows(data.encode()))) == list(map(of_any_order, listed))


@given(st.binary() | st.text().map(str.encode), st.sampled_from(["csv", "jsonl", None]))
def test_any_bytes_are_jobs_or_a_refusal_on_one_line(data, form):
    try:
        rows(data, form)
    except GahpError as error:
        said = str(error)
    else:
        return
    assert said.startswith("rows.csv:")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "rows.csv: it is empty"),
        (b"name,arg\n", "rows.csv:1: column 'arg' is neither in a placeholder nor one that"),
        (b"seed,prioriy\n", "did you mean priority? A parameter that is only for your results"),
        (b"seed,imput:in\n", "did you mean input:in?"),
        (b"seed,input\n", "did you mean inputs, or input:NAME?"),
        (b"name,input:\n", "column 'input:' names no input; did you mean input"),
        (b"seed,seed\n", "column seed appears twice"),
        (b",seed\n0,1\n", "use to_csv(index=False)"),
        (b"args,template,input_template\n", "column input_template appears twice"),
        (b"name,args\na\n", "rows.csv:2: expected 2 cells, as in the header, found 1"),
        (b"name,,args\na,b,c\n", "rows.csv:2: the cell 'b' is in a column without a name"),
        (b'name,args\n"a\nb",c\nd,"e\nf\n', "rows.csv:4: a quotation mark that opens here is"),
        (b"name\rx1\rx2\r", "rows.csv:1: lines end in bare carriage returns: save the file"),
        (b'name,args\n"a"b,c\n', "rows.csv:2: ',' expected after '\"'"),
        (b"name,args\nj,a 'b\n", 'rows.csv:2: arguments "a \'b" cannot be split'),
        (b"name,priority\nj,high\n", "rows.csv:2: priority: expected a whole number"),
        (b"name,memory\nj,2\n", "rows.csv:2: memory: 2 bytes of memory: did you mean 2MB or 2GB?"),
        (b'{"memory": true}', "rows.csv:1: memory: True is not a size"),
        (b"name,inputs\nj,a.txt\n", 'input "a.txt": expected NAME=FILE'),
        (b"name,inputs,input:in\nj,in=a,b\n", "rows.csv:2: input 'in' is given twice"),
        (b"name,template\nj,nowhere.xml\n", "rows.csv:2: template 'nowhere.xml' cannot be read"),
        (b"name\nj\xe9\n", "rows.csv:2: byte 0xe9 at column 2 is not UTF-8"),
        ("name\nj\n".encode("utf-16"), "rows.csv: it is UTF-16: save it as UTF-8"),
        ("name\nj\n".encode("utf-16-le"), "rows.csv:1: it has a NUL byte, as UTF-16"),
        (b'n\n1\n"' + b"x" * 200_000, "rows.csv:3: a cell has more than 131,072 characters: put"),
        (b'{"name": "a"\n', "rows.csv:1: expected one JSON object on the line"),
        (b'{"name": "a", "name": "b"}', "'name' is given twice"),
        (b'{"name": 5}', "name: expected a string, not empty, found 5"),
        (b'{"args": [true]}', "args: expected strings or numbers, found true"),
        (b'{"fpops": NaN}', "NaN is not a JSON number"),
        (b'{"priority": true}', "priority: expected a whole number"),
        (b'{"inputs": {"in": 5}}', "input 'in': expected a string or an object, found 5"),
        (b'{"inputs": {"in": {}}}', "expected one of path, staged, url and inline, found none"),
        (b'{"inputs": {"in": {"path": "a", "url": "b"}}}', "found path and url"),
        (b'{"inputs": {"in": {"pth": "a"}}}', "there is no 'pth' in a file; did you mean path?"),
        (b'{"inputs": {"in": {"path": ""}}}', "path: expected a string, not empty"),
        (b'{"inputs": {"in": {"path": "a", "size": 5}}}', "size and md5 go with a url"),
        (b'{"inputs": {"in": {"url": "http://h/", "size": "5"}}}', "size: expected a number"),
        (
            b'{"inputs": {"in": {"url": "http://h/", "size": 5, "md5": 5}}}',
            "md5: expected 32 hexadecimal",
        ),
        (b'{"layers": [1, 2]}', "'layers': expected text, a number, true or false, found [1, 2]"),
        (b'{"seed": {"0": 1}}', 'pandas writes rows with to_json(orient="records")'),
        (b'[{"seed": 1},\n\n{"name": 5}]', "rows.csv:3: name: expected a string"),
        (b'[{"seed": 1}\n{"seed": 2}]', "rows.csv:2: expected a list of JSON objects, found {"),
        (b'[{"seed": 1}, 5]', "rows.csv:1: expected a JSON object for each job, found 5"),
        (b'[{"seed": 1},', "rows.csv:1: expected a list of JSON objects, found the end"),
        (b'[{"seed": 1}] x', "found x: Extra data"),
        (b"{" + b'"args":[' * 100_000, "rows.csv:1: expected one JSON object on the line"),
    ],
)
def test_a_refusal_tells_the_line_what_was_expected_and_what_was_found(data, said):
    with pytest.raises(BadRequest) as caught:
        rows(data)
    assert said in str(caught.value)


def test_rows_before_a_wrong_one_are_there_already():
    read = rows_of([b"name\n", b"a\n", b"\xff\n"], name="r")
    assert next(read)[1].name == "a"
    with pytest.raises(BadRequest, match="r:3: byte 0xff"):
        next(read)


def test_rows_know_the_lines_on_which_they_begin():
    data = b'\n\nname,args\n\na,"x\ny"\n,,\nb,z\n'
    assert [(line, job.name) for line, job in rows_of(io.BytesIO(data))] == [(5, "a"), (8, "b")]


def test_a_number_in_json_is_an_argument_as_it_was_written():
    (job,) = rows(b'{"args": ["-x", 1.50, 1e3, -7, 12345678901234567890]}')
    assert job.args == ("-x", "1.50", "1e3", "-7", "12345678901234567890")


@pytest.mark.parametrize("data", [b'{"n": 1e999}', b"n\n1e999\n"], ids=["JSON", "CSV"])
def test_a_number_that_is_too_large_stays_a_text(data):
    (job,) = rows(data)
    assert job.parameters == {"n": "1e999"}


def test_cells_may_have_spaces_around_them_and_columns_any_case():
    (job,) = rows(b"Name, ARGS , Input:In , Input_Template,fpops\n a , -n 1, f.txt , , 1e6\n")
    columns = {"Name": "a", "fpops": 1e6}
    inputs = {"In": LocalFile("f.txt")}
    assert job == Job(("-n", "1"), inputs, "a", fpops=1e6, parameters=columns)


def test_relative_paths_are_seen_from_the_directory_of_the_file(tmp_path):
    (tmp_path / "t.xml").write_text("<template/>")
    csv_file = tmp_path / "jobs.tsv"
    csv_file.write_text("input:in\tinput:b\ttemplate\nd/f.txt\t/f.txt\tt.xml\n")
    ((_, job),) = read_rows(csv_file)
    assert job.inputs == {"in": LocalFile(f"{tmp_path}/d/f.txt"), "b": LocalFile("/f.txt")}
    assert job.input_template == "<template/>"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "name\n{}"),
        ("a.NDJSON", '{"name": "{}"}'),
        ("a.txt", '  {"name": "{}"}'),
        ("a.json", '{"name": "{}"}'),
        ("a.jsonl", '[{"name": "{}"}]'),
        ("a.txt", '\n[\n{"name": "{}"}\n]'),
        ("a.dat", "name\n{}"),
    ],
)
def test_the_format_is_told_by_the_name_or_the_beginning(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert [job.name for _, job in read_rows(tmp_path / name)] == ["{}"]


def test_a_file_that_is_not_there_is_reported(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path, "a\0b"):
        with pytest.raises(BadRequest, match="the file with the rows cannot be opened"):
            next(read_rows(path))
