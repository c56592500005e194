"""What is said of a submit beforehand is what the submit itself would say, and nothing is made."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.bridge import (
    InlineFile,
    JobRequest,
    LocalFile,
    RemoteFile,
    StagedFile,
    SubmitRequest,
    association,
)
from boinc_gahp.errors import BatchTooLarge, GahpError, JobRefused, ProjectError, StagingError
from tests.bridge.test_submit_faults import local_project  # noqa: F401  (fixture)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bridge.conftest import Site

TEXT = InlineFile("x")


def uppercase(*jobs: JobRequest, name: str = "judged") -> SubmitRequest:
    return SubmitRequest(name, "uppercase", jobs)


def test_a_good_batch_is_told_as_it_would_go_and_leaves_nothing(site: Site) -> None:
    local = site.file(b"1234567")
    job = JobRequest("good-0", ("-v",), {"in1": local, "in0": StagedFile("there.txt")})
    request = SubmitRequest("good", "multi", [job, replace(job, name="good-1")])
    with site.bridge(max_post_bytes=5000) as bridge:
        judgement = bridge.judge(request)
    assert judgement.refusal is None
    assert judgement.refusals == {}
    assert judgement.inputs == dict.fromkeys(("good-0", "good-1"), (job.inputs["in0"], local))
    assert judgement.files == {local.path: 7}
    assert judgement.staged == {"there.txt"}
    assert judgement.max_post_bytes == 5000
    assert 500 < judgement.request_bytes < 1500
    assert {rpc for rpc in ("create_batch", "query_files") if site.proxy.count(rpc)} == set()


def own(open_name: str, command: str = "") -> str:
    """Return an input template of a job's own."""
    line = f"<command_line>{command}</command_line>" if command else ""
    ref = f"<file_ref><open_name>{open_name}</open_name></file_ref>"
    return f"<input_template><file_info/><workunit>{ref}{line}</workunit></input_template>"


def own_output(open_name: str) -> str:
    """Return an output template of a job's own."""
    return (
        "<output_template><file_info><name><OUTFILE_0/></name></file_info><result><file_ref>"
        f"<file_name><OUTFILE_0/></file_name><open_name>{open_name}</open_name>"
        "</file_ref></result></output_template>"
    )


def bad_jobs(site: Site, room: Path) -> dict[str, JobRequest]:
    return {
        "absent": JobRequest("absent", (), {"in": LocalFile(str(room / "nowhere"))}),
        "quote": JobRequest("quote", ('"',), {"in": TEXT}),
        "too many": JobRequest("too_many", (), {"in": TEXT, "more": TEXT}),
        "slash/name": JobRequest("slash/name", (), {"in": TEXT}),
        "empty": JobRequest("empty", (), {"in": InlineFile("")}),
        "control": JobRequest("control", (), {"in": InlineFile("a\x0cb")}),
        "physical": JobRequest("physical", (), {"in": StagedFile("a b.txt")}),
        "option": JobRequest("option", (), {"in": StagedFile("--x")}),
        "fpops": JobRequest("fpops", (), {"in": TEXT}, rsc_fpops_est=float("nan")),
        "long": JobRequest("long", ("x" * 4100,), {"in": TEXT}),
        "template": JobRequest("template", (), {"in": TEXT}, input_template="<nothing"),
        "emptyarg": JobRequest("emptyarg", ("",), {"in": TEXT}),
        "name": JobRequest("name", (), {"in": TEXT}, input_template=own("in&amp;")),
        "sql": JobRequest("sql", (), {"in": TEXT}, input_template=own("in", "it's")),
        "both": JobRequest("both", ("-x",), {"in": TEXT}, input_template=own("in", "-y")),
        "output": JobRequest("output", (), {"in": TEXT}, output_template=own_output("a&lt;b")),
        "entity": JobRequest("entity", (), {"in": RemoteFile("http://h/?a=1&lt;b", 1, "0" * 32)}),
        "twice": JobRequest("good_0", (), {"in": site.file(b"")}),
    }


def test_every_job_that_a_submit_would_refuse_is_named_with_the_same_words(
    site: Site, tmp_path: Path
) -> None:
    good = [JobRequest(f"good_{n}", (), {"in": TEXT}) for n in range(2)]
    bad = bad_jobs(site, tmp_path)
    request = uppercase(good[0], *bad.values(), good[1])
    with site.bridge() as bridge:
        judgement = bridge.judge(request)
        assert set(judgement.refusals) == {job.name for job in bad.values()}
        assert set(judgement.inputs) == {"good_1"}  # good_0 stands there twice
        for job in bad.values():
            alone = uppercase(good[0], job)
            with pytest.raises((GahpError, StagingError)) as raised:
                bridge.submit(alone)
            assert str(raised.value) == str(judgement.refusals[job.name])
            assert job.name in str(raised.value) or "nowhere" in str(raised.value)
    assert judgement.refusal is None
    assert site.proxy.count("create_batch") == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch_name": "a'b"}, "could never find the batch again"),
        ({"jobs": ()}, "has no jobs"),
        ({"output_template_filename": "a/b"}, "template file name"),
        ({"rsc_disk_bound": float("inf")}, "rsc_disk_bound is inf"),
    ],
    ids=["name", "no jobs", "template file", "number"],
)
def test_what_stands_against_the_batch_stands_beside_the_jobs(
    site: Site, change: dict[str, object], words: str
) -> None:
    request = uppercase(JobRequest("ok", (), {"in": TEXT}), JobRequest("not ok", (), {"in": TEXT}))
    with site.bridge() as bridge:
        judgement = bridge.judge(replace(request, **change))  # type: ignore[arg-type]
    assert words in str(judgement.refusal)
    assert set(judgement.refusals) == (set() if "jobs" in change else {"not ok"})


def test_a_batch_that_is_too_large_is_told_with_its_size(site: Site) -> None:
    jobs = [JobRequest(f"large-{n}", (), {"in": InlineFile("x" * 400)}) for n in range(20)]
    with site.bridge(max_post_bytes=8000) as bridge:
        judgement = bridge.judge(uppercase(*jobs))
        assert isinstance(judgement.refusal, BatchTooLarge)
        assert judgement.refusal.nbytes == judgement.request_bytes > 20 * 400
        with pytest.raises(BatchTooLarge) as raised:
            bridge.submit(uppercase(*jobs))
    assert str(raised.value) == str(judgement.refusal)


def test_which_files_are_absent_is_asked_without_a_trace(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = site.file(b"known by its contents")
    other = site.file(b"never sent")
    with site.bridge() as bridge:
        bridge.submit(uppercase(JobRequest("known-0", (), {"in": here}), name="known"))
        names = bridge.physical_names([here.path, other.path, here.path])
        assert names[here.path] == hashlib.md5(b"known by its contents").hexdigest() + ".txt"
        assert bridge.absent([*names.values(), "x.dat"]) == {names[other.path], "x.dat"}
        assert bridge.absent([]) == set()
        with pytest.raises(ProjectError, match="bad filename"):
            bridge.absent(["a/b"])
        # The real number takes a busy machine longer than the time-out of this site.
        monkeypatch.setattr(association, "_NAMES_PER_QUERY", 50)
        many = [f"{n:032x}.dat" for n in range(51)]
        before = site.proxy.count("query_files")
        assert bridge.absent(many) == set(many)
        assert site.proxy.count("query_files") == before + 2


def test_an_estimate_judges_as_a_submit_does(site: Site) -> None:
    with site.bridge() as bridge:
        with pytest.raises(JobRefused, match="wants 1 input file"):
            bridge.estimate(uppercase(JobRequest("e-0")))
        assert bridge.estimate(uppercase(JobRequest("e-0", (), {"in": site.file(b"x")}))) > 0
    assert site.proxy.count("upload_files") == 0
