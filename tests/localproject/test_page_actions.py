"""What is done on the project's page: batches submitted, aborted, retired, outputs handed out."""

from __future__ import annotations

import hashlib
import io
import time
import zipfile
from dataclasses import fields
from typing import TYPE_CHECKING

import pytest
from lxml import html

from boinc_gahp.localproject import NewJob
from boinc_gahp.localproject.backend import expiry
from boinc_gahp.localproject.states import BatchState, ErrorMask, Outcome
from boinc_gahp.templates import read_workunit
from tests.localproject.visitor import found, words

if TYPE_CHECKING:
    import requests

    from tests.localproject.bench import Bench
    from tests.localproject.visitor import Visitor

FILE = {"file_0": ("data.TXT", b"abc")}
NAME = "900150983cd24fb0d6963f7d28e17f72.TXT"


def value(answer: requests.Response, field: str) -> str:
    """Return what a form shows as typed in a field."""
    [text] = found(html.fromstring(answer.text), f"//input[@name='{field}']/@value")
    return str(text)


def wrong(answer: requests.Response) -> list[str]:
    """Return what a form says is wrong."""
    assert answer.status_code == 422, answer.text
    page = html.fromstring(answer.text)
    return [words(each) for each in found(page, "//*[@class='wrong'] | //*[@role='alert']")]


def done(bench: Bench, visitor: Visitor, **options: str) -> None:
    """Make batch 1, whose two jobs are done, named b_0 and b_1; what they gave is ONE and TWO."""
    visitor.sign_in().batch("b", 2, **options)
    bench.now = time.time()
    bench.transition()
    bench.compute(b"ONE", b"TWO")
    bench.settle()


# Submitting.


def test_a_batch_is_submitted_with_a_file_that_is_sent(bench: Bench, visitor: Visitor) -> None:
    visitor.sign_in()
    fields = {
        "app": "uppercase",
        "batch_name": "my batch",
        "jobs": "3",
        "command_line": "--seed {n}",
        "priority": "7",
        "delay_bound": "3600",
        "min_quorum": "2",
    }
    answer = visitor.send("submit", fields, FILE)
    assert visitor.said(answer) == "Submitted 3 jobs."
    assert answer.headers["Location"] == "/test/batches/1"
    assert bench.column("batch", "name") == ["my batch"]
    assert bench.column("batch", "state") == [BatchState.IN_PROGRESS]
    assert bench.column("workunit", "name") == ["my-batch_0", "my-batch_1", "my-batch_2"]
    assert bench.column("workunit", "priority") == [7, 7, 7]
    assert bench.column("workunit", "delay_bound") == [3600] * 3
    assert bench.column("workunit", "min_quorum") == [2] * 3
    documents = [read_workunit(text) for text in bench.column("workunit", "xml_doc")]
    assert [each.command_line for each in documents] == ["--seed 0", "--seed 1", "--seed 2"]
    assert {file.name for each in documents for file in each.files} == {NAME}
    stored = bench.core.download.find(NAME)
    assert stored is not None
    assert stored.path.read_bytes() == b"abc"


def test_a_file_that_was_sent_stays_as_long_as_its_batch(bench: Bench, visitor: Visitor) -> None:
    visitor.sign_in().batch("b")
    assert bench.column("batch_file_assoc", "batch_id") == [1]
    later = time.time() + 200_000
    expiry.delete_job_files(bench.core, later)
    assert bench.core.download.exists(NAME.replace("TXT", "txt"))
    visitor.send("batches/1/retire")
    expiry.delete_job_files(bench.core, later)
    assert not bench.core.download.exists(NAME.replace("TXT", "txt"))


@pytest.mark.parametrize("name", ["there.dat", "n" * 255], ids=["short", "long"])
def test_a_batch_is_submitted_with_a_file_that_is_staged(
    bench: Bench, visitor: Visitor, name: str
) -> None:
    bench.core.download.add_bytes(name, b"abc")
    visitor.sign_in()
    fields = {"app": "uppercase", "staged_0": f" {name} ", "jobs": ""}
    nothing = {"file_0": ("", b"")}
    assert visitor.said(visitor.send("submit", fields, nothing)) == "Submitted 1 job."
    [document] = bench.column("workunit", "xml_doc")
    assert [file.name for file in read_workunit(document).files] == [name]


def test_a_file_may_be_larger_than_php_would_take(bench: Bench, visitor: Visitor) -> None:
    # The visitor's server empties forms for PHP from 1,000 bytes on.
    contents = b"x" * 3_000_000
    visitor.sign_in()
    answer = visitor.send("submit", {"app": "uppercase"}, {"file_0": ("big", contents)})
    assert answer.status_code == 303
    assert bench.core.download.exists(hashlib.md5(contents).hexdigest())
    assert list((bench.directory / "spool").iterdir()) == []


def test_what_is_missing_is_said_and_what_was_given_is_kept(bench: Bench, visitor: Visitor) -> None:
    visitor.sign_in()
    fields = {
        "app": "multi",
        "batch_name": 'a "name" & more',
        "command_line": "<x>",
        "min_quorum": "1",
    }
    answer = visitor.send("submit", fields, FILE)
    assert wrong(answer) == [
        "Nothing was submitted yet: see below what is missing.",
        "in1: no file was given. Each job of multi has 2 input files (in0, in1): choose one to "
        "send, or name one that is staged.",
    ]
    for field in ("batch_name", "command_line", "min_quorum"):
        assert value(answer, field) == fields[field]
    assert value(answer, "staged_0") == NAME
    assert bench.column("batch", "id") == []
    again = {**fields, "staged_0": value(answer, "staged_0")}
    assert visitor.send("submit", again, {"file_1": FILE["file_0"]}).status_code == 303


@pytest.mark.parametrize(
    ("field", "typed", "told"),
    [
        ("staged_0", "nowhere.dat", "in: no file is staged as “nowhere.dat”"),
        ("staged_0", "../../port", "no file is staged as “../../port”"),
        ("jobs", "many", "Number of jobs: “many” was typed, a whole number is expected"),
        ("jobs", "10001", "“10001” was typed, 1 to 10,000 is expected"),
        ("jobs", "0", "“0” was typed, 1 to 10,000 is expected"),
        ("priority", "high", "Priority: “high” was typed"),
        ("priority", "9" * 5000, "a whole number is expected"),
        ("max_total_results", "2147483648", "a whole number is expected"),
        ("delay_bound", "inf", "a number, such as 1e9, is expected"),
        ("delay_bound", "1 day", "Deadline: “1 day” was typed, a number, such as 1e9, is expected"),
        ("min_quorum", "0", "<min_quorum> holds '0': expected a whole number, 1 or more"),
        ("batch_name", "x" * 300, "expected at most 255 characters"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    field: str, typed: str, told: str, bench: Bench, visitor: Visitor
) -> None:
    bench.core.download.add_bytes("there.dat", b"abc")
    visitor.sign_in()
    fields = {"app": "uppercase", "staged_0": "there.dat", field: typed}
    answer = visitor.send("submit", fields)
    assert told in " ".join(wrong(answer))
    assert value(answer, field) == typed
    assert bench.column("batch", "id") == []


def test_how_long_a_batch_would_run_is_told_before_it_is_submitted(
    bench: Bench, visitor: Visitor
) -> None:
    fields = {"app": "uppercase", "jobs": "30", "rsc_fpops_est": "4e9", "estimate": "1"}
    bench.set("host", "id = 1", p_fpops=7e9)
    answer = visitor.sign_in().send("submit", fields, FILE)
    assert answer.status_code == 200
    page = html.fromstring(answer.text)
    [told] = found(page, "//*[@id='estimate']")
    assert words(told).startswith("About 1 min on one host")
    assert (value(answer, "jobs"), value(answer, "staged_0")) == ("30", NAME)
    assert bench.column("batch", "id") == bench.column("workunit", "id") == []
    # The key that is pressed in a field is for the first button.
    assert found(page, "//form[contains(@enctype, 'multipart')]//button/text()")[0] == "Submit"


def test_an_app_that_is_not_there_is_said(visitor: Visitor) -> None:
    visitor.sign_in()
    assert "There is no such app" in visitor.get("submit?app=none").text
    assert visitor.send("submit", {"app": "none"}).status_code == 404


def test_a_body_that_is_no_form_is_refused(visitor: Visitor) -> None:
    visitor.sign_in()
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = visitor.session.post(
        f"{visitor.core.url}submit", data=b"--x\r\nbroken", headers=headers, timeout=60
    )
    assert answer.status_code == 400
    assert "The form cannot be read" in answer.text


def test_the_form_offers_the_templates_files_and_values(visitor: Visitor) -> None:
    page = visitor.sign_in().page("submit?app=multi")
    assert found(page, "//legend/code/text()") == ["in0", "in1"]
    assert found(page, "//input[@name='rsc_fpops_est']/@placeholder") == ["1e9"]
    assert found(page, "//input[@name='max_error_results']/@placeholder") == ["2"]
    # All that a job can be given but what stands elsewhere in the form, or is an admin's.
    apart = {"name", "command_line", "files", "target_host", "target_user"}
    apart |= {"input_template", "output_template"}
    offered = {each.name for each in fields(NewJob)} - apart
    assert offered <= set(found(page, "//input/@name"))
    ids = set(found(page, "//form//@id"))
    assert {str(each) for each in found(page, "//label/@for")} <= ids


# Aborting and retiring.


def test_a_batch_is_aborted(bench: Bench, visitor: Visitor) -> None:
    visitor.sign_in().batch("b", 2)
    bench.transition()
    told = visitor.said(visitor.send("batches/1/abort"))
    assert told == "Batch b was aborted. Jobs that had ended stay as they are."
    assert bench.column("batch", "state") == [BatchState.ABORTED]
    assert bench.column("workunit", "error_mask") == [ErrorMask.CANCELLED] * 2
    assert set(bench.results("outcome")) == {Outcome.DIDNT_NEED}
    assert visitor.said(visitor.send("batches/1/abort")) == "Batch b had already ended."


def test_a_job_is_aborted(bench: Bench, visitor: Visitor) -> None:
    visitor.sign_in().batch("b", 2)
    assert visitor.said(visitor.send("jobs/2/abort")).startswith("Job b_1 was aborted.")
    assert bench.column("workunit", "error_mask") == [0, ErrorMask.CANCELLED]
    assert "had already ended: nothing was done" in visitor.said(visitor.send("jobs/2/abort"))


def test_ticked_jobs_are_aborted_and_others_not(bench: Bench, visitor: Visitor) -> None:
    visitor.sign_in().batch("b", 4)
    bench.set("workunit", "id = 4", canonical_resultid=1)
    boxes = found(visitor.page("batches/1"), "//input[@type='checkbox']/@name")
    assert boxes == ["job_1", "job_2", "job_3"]
    ticked = dict.fromkeys(("job_1", "job_3", "job_4"), "on")
    told = visitor.said(visitor.send("batches/1/abort-jobs", ticked))
    assert told == "2 jobs aborted; 1 had already ended."
    assert bench.column("workunit", "error_mask") == [16, 0, 16, 0]
    assert "No job was ticked" in visitor.said(visitor.send("batches/1/abort-jobs"))


def test_a_batch_is_retired(bench: Bench, visitor: Visitor) -> None:
    visitor.sign_in().batch("b")
    told = visitor.said(visitor.send("batches/1/retire"))
    assert told == "Batch b was retired. Its outputs will be deleted later."
    assert bench.column("batch", "state") == [BatchState.RETIRED]
    assert visitor.said(visitor.send("batches/1/retire")) == "Batch b was already retired."
    assert bench.column("batch", "state") == [BatchState.RETIRED]


# Handing out.


def attachment(answer: requests.Response) -> tuple[str, bytes]:
    """Return name and contents of a file that must be saved, not shown."""
    assert answer.status_code == 200, answer.text
    headers = answer.headers
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert int(headers["Content-Length"]) == len(answer.content)
    kind, _, name = headers["Content-Disposition"].partition("; ")
    assert kind == "attachment"
    return name, answer.content


def test_files_are_handed_out_one_by_one(bench: Bench, visitor: Visitor) -> None:
    done(bench, visitor)
    [link] = found(visitor.page("jobs/2"), "//li[@id='instance-2']//ul/li/a/@href")
    answer = visitor.get(link.removeprefix("/test/"))
    assert attachment(answer) == ("filename=b_1_0_out", b"TWO")
    [link] = found(visitor.page("jobs/2"), "//aside//ul/li/a/@href")
    answer = visitor.get(link.removeprefix("/test/"))
    assert attachment(answer) == (f"filename={NAME.replace('TXT', 'txt')}", b"abc")


@pytest.mark.parametrize(
    ("path", "name", "contents"),
    [
        ("jobs/2/outputs.zip", "filename=b_1.zip", {b"TWO"}),
        ("batches/1/outputs.zip", "filename=b.zip", {b"ONE", b"TWO"}),
    ],
    ids=["job", "batch"],
)
def test_outputs_are_handed_out_packed(
    path: str, name: str, contents: set[bytes], bench: Bench, visitor: Visitor
) -> None:
    done(bench, visitor)
    assert path in str(html.tostring(visitor.page(path.removesuffix("/outputs.zip"))))
    given, packed = attachment(visitor.get(path))
    assert given == name
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert {archive.read(each) for each in archive.namelist()} == contents
    assert list((bench.directory / "spool").iterdir()) == []


def test_a_name_cannot_break_out_of_the_header(bench: Bench, visitor: Visitor) -> None:
    done(bench, visitor)
    bench.set("batch", name='../a"b\r\nSet-Cookie: x=y; é')
    name, _ = attachment(visitor.get("batches/1/outputs.zip"))
    assert "filename*=UTF-8''.._a%22b__Set-Cookie%3A%20x%3Dy%3B%20%C3%A9.zip" in name


def test_outputs_that_are_gone_are_said_to_be_missing(bench: Bench, visitor: Visitor) -> None:
    done(bench, visitor)
    for file in bench.core.upload.root.rglob("b_*"):
        file.unlink()
    for path in ("jobs/1/outputs.zip", "batches/1/outputs.zip", "instances/1/outputs/0"):
        assert visitor.get(path).status_code == 404


def test_size_and_checksum_of_an_output_outlast_it(bench: Bench, visitor: Visitor) -> None:
    done(bench, visitor)
    for file in bench.core.upload.root.rglob("b_*"):
        file.unlink()
    [card] = found(visitor.page("jobs/1"), "//li[@id='instance-1']")
    assert " was deleted" in words(card)
    assert f"3 bytes, not on this server MD5 {hashlib.md5(b'ONE').hexdigest()}" in words(card)
