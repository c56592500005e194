"""Uploaded files by their number in the template, whichever optional ones are absent."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import OutputError, ProjectDown, ProjectError
from boinc_gahp.fetch._uploaded import Output, Uploaded
from tests.helpers import refusal


@dataclass
class Stream:
    filename: str | None
    close: object


@dataclass
class Server:
    """Answers as get_output.php does (wire/get_output__*), for the files with these numbers."""

    numbers: list[int]
    cmd: str = "result_file"
    shifted: bool = True
    named: bool = True
    deleted: bool = False
    asked: list[int] = field(default_factory=list)
    open: int = 0

    def file(self, place):
        self.asked.append(place)
        if not self.shifted:
            if place not in self.numbers:
                raise refusal(f"no such file: job_0_0_r799338679_{place}")
            place = self.numbers.index(place)
        if place >= len(self.numbers):
            if self.cmd == "result_file":
                raise refusal(f"bad file num: {place} > {len(self.numbers)}")
            raise refusal("no such file: the project sent its directory d9 instead")
        name = f"job_0_0_r799338679_{self.numbers[place]}"
        if self.deleted:
            raise refusal(f"no such file /srv/boinc/upload/324/{name}")
        self.open += 1
        return Stream(name if self.named else None, self.closed)

    def closed(self):
        self.open -= 1

    def uploaded(self):
        return Uploaded(self.file, "job_0")


def found(uploaded, number):
    stream = uploaded.open(Output("out", number))
    if stream is None:
        return None
    stream.close()
    return stream.filename


@given(
    st.sets(st.integers(0, 7)),
    st.permutations(range(8)),
    st.sampled_from(["result_file", "workunit_file"]),
    st.booleans(),
)
def test_a_file_is_found_by_its_number_or_absent(present, order, cmd, shifted):
    server = Server(sorted(present), cmd, shifted)
    uploaded = server.uploaded()
    for number in order:
        name = found(uploaded, number)
        if number in present:
            assert name.endswith(f"_{number}")
        else:
            assert name is None
        assert server.open == 0
    # What was learned is not asked again: once a file, and once each for where the end is.
    assert len(server.asked) <= 8 + 8 + 8


def test_an_absent_file_in_the_middle_gives_no_other_files_content():
    server = Server([0, 2])
    uploaded = server.uploaded()
    assert found(uploaded, 1) is None
    assert found(uploaded, 2) == "job_0_0_r799338679_2"
    assert server.asked == [1, 0, 1]


def test_all_there_is_one_request_a_file():
    server = Server([0, 1, 2])
    uploaded = server.uploaded()
    for number in range(3):
        assert found(uploaded, number) is not None
    assert server.asked == [0, 1, 2]


def test_a_project_that_gives_no_names_is_taken_by_its_count():
    server = Server([0, 1], named=False)
    assert server.uploaded().open(Output("out", 1))
    assert server.asked == [1]


def test_a_file_with_a_name_of_its_own_is_taken_by_its_count():
    server = Server([5, 6])
    stream = server.uploaded().open(Output("out", 1, numbered=False))
    assert stream.filename == "job_0_0_r799338679_6"


def test_a_deleted_file_tells_which_are_absent():
    uploaded = Server([0, 2], deleted=True).uploaded()
    assert found(uploaded, 1) is None
    with pytest.raises(OutputError, match="has deleted output number 2"):
        found(uploaded, 2)


@pytest.mark.parametrize("kind", [ProjectDown, ProjectError])
def test_any_other_error_passes(kind):
    def fail(place):
        words = "project down for maintenance"
        raise kind(words, rpc="get_output", host="h", number=-1, words=words)

    with pytest.raises(kind):
        found(Uploaded(fail, "job_0"), 0)
