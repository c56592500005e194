"""The files that the words of a command name, and what they are called in the job."""

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api.program_files import FileFinder, together
from boinc_gahp.api.programs import program_batch
from boinc_gahp.errors import BadRequest, StagingError
from boinc_gahp.submit import trees
from boinc_gahp.submit.generated_files import Member
from boinc_gahp.submit.types import LocalFile


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The working directory, with files beside it."""
    home = tmp_path / "here"
    (home / "data/deep").mkdir(parents=True)
    for name in ("here/data/a.csv", "here/data/deep/b", "here/x=y", "beside.txt", "here/model"):
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(home)
    return home


@pytest.mark.parametrize(
    ("word", "becomes", "names"),
    [
        ("data/a.csv", "data/a.csv", ["data/a.csv"]),
        ("./data/a.csv", "./data/a.csv", ["data/a.csv"]),
        ("data", "data", ["data"]),
        ("data/", "data/", ["data"]),
        ("--config=model", "--config=model", ["model"]),
        ("x=y", "x=y", ["x=y"]),
        ("../beside.txt", "beside.txt", ["beside.txt"]),
        ("--to=../beside.txt", "--to=beside.txt", ["beside.txt"]),
        ("data/../model", "model", ["model"]),
        ("../here/data/", "data/", ["data"]),
        *((word, word, []) for word in ("no-such-file", "", ".", "..", "/", "/etc/passwd")),
        *((word, word, []) for word in ("--input=/dev/null", "model\0", "x" * 5000)),
    ],
)
def test_a_word_that_names_a_file_sends_it(word, becomes, names):
    words, sources = FileFinder().in_words([word])
    assert words == [becomes]
    assert [source.name for source in sources] == names


def test_an_absolute_path_becomes_its_last_part(tmp_path):
    words, [source] = FileFinder().in_words([f"{tmp_path}/beside.txt"])
    assert words == ["beside.txt"]
    assert source.file == LocalFile(tmp_path / "beside.txt")
    assert source.shown == f"beside.txt={tmp_path}/beside.txt"


def test_a_directory_that_changed_just_now_is_another(here, monkeypatch):
    monkeypatch.setattr(trees, "_REST", 1e9)
    [before] = FileFinder().in_words(["data"])[1]
    (here / "data/a.csv").write_text("longer than before")
    [after] = FileFinder().in_words(["data"])[1]
    assert before.file.stamp != after.file.stamp


@given(st.lists(st.text()))
def test_words_that_name_nothing_stay_as_they_are(words):
    kept, sources = FileFinder().in_words(words)
    assert sources or kept == words


@pytest.mark.parametrize(
    "word", [".ssh/id_rsa", ".ssh/config", ".ssh", "--key=.ssh/id_rsa", ".netrc", "keys/id_rsa"]
)
def test_a_word_sends_no_secrets(here, word):
    for name in (".ssh/id_rsa", ".ssh/config", ".netrc", "keys/id_rsa"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text("secret")
    with pytest.raises(BadRequest, match="looks as if it held secrets"):
        FileFinder().in_words([word])
    # Who names it as an input wants it.
    assert FileFinder().given(word.partition("=")[2] or word).file


def test_two_files_of_one_name_are_refused():
    finder = FileFinder()
    sources = [finder.given("model"), finder.named("model", "data/a.csv")]
    with pytest.raises(BadRequest, match='would both be "model" in the job\'s directory'):
        together(sources)
    assert list(together([finder.given("model"), finder.given("./model")])) == ["model"]


def test_a_file_is_no_directory_of_another():
    finder = FileFinder()
    sources = [finder.given("model"), finder.given("model/deep/b=data/a.csv")]
    with pytest.raises(BadRequest, match=r"model.* below it: rename one"):
        together(sources)


def test_what_a_directory_brings_is_not_sent_twice():
    _, sources = FileFinder().in_words(["data/a.csv", "data", "data/deep"])
    needed = together(sources)
    assert list(needed) == ["data"]
    assert isinstance(needed["data"].file, Member)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("model", "model"),
        ("other.csv=data/a.csv", "other.csv"),
        ("sub/other.csv=data/a.csv", "sub/other.csv"),
        ("x=y", "x=y"),
        (f"remote:https://data.example.org/set.csv?version=2,5,{'0' * 32}", "set.csv"),
        ("note.txt=inline:hello", "note.txt"),
        ("/usr/bin/env", "env"),
    ],
)
def test_an_input_is_given_with_or_without_a_name(text, name):
    assert FileFinder().given(text).name == name


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "/abs", "a/../..", "nul\0"])
def test_a_name_outside_of_the_directory_is_refused(name):
    with pytest.raises(BadRequest):
        FileFinder().named(name, "model")


def test_an_input_that_is_not_there_is_told():
    with pytest.raises(StagingError, match="'no-such-file' cannot be read: No such file"):
        FileFinder().given("no-such-file")
    with pytest.raises(BadRequest, match="has no name: write NAME=inline:hello"):
        FileFinder().given("inline:hello")


def test_a_variable_in_front_of_the_program_is_not_taken_for_it(site):
    # A shell would set DATA; the file behind = is no program.
    with pytest.raises(BadRequest, match=r'the program "DATA=\./model" is no file here'):
        program_batch(
            site.project.session, ["DATA=./model", "python3", "-V"], image="bb", app="docker"
        )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"command": b"./model"}, "command is a bytes: expected words"),
        ({"command": 5}, "command is a int"),
        ({"command": ["sh", "a\0b"]}, "has a zero byte"),
        ({"command": ["sh", "\ud800"]}, "not valid Unicode"),
        (
            {"command": ["sh", "x" * 131_072]},
            "has 131,072 bytes, and a program gets at most 131,071",
        ),
        ({"environment": {"A": "x" * 131_070}}, 'variable "A" has 131,072 bytes'),
        ({"environment": {"A": "\0"}}, "has a zero byte"),
        ({"environment": "A=b"}, "environment is a str"),
        ({"outputs": ["a\0"]}, "has a zero byte"),
        ({"outputs": 5}, "outputs is a int"),
        ({"inputs": 5}, "inputs: expected paths"),
        ({"inputs": [5]}, "inputs: expected paths"),
        ({"network": "no"}, "network is 'no': expected True or False"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_no_program_can_get_is_refused(site, given, words):
    given = {"command": ["sh"], "image": "bb", "app": "docker", **given}
    with pytest.raises(BadRequest, match=words):
        program_batch(site.project.session, **given)


def test_the_longest_word_is_sent(site):
    word = "ü" * 65_535 + "x"
    made = program_batch(site.project.session, ["sh", word], image="bb", app="docker")
    assert made.jobs[0].program.command == ("sh", word)
