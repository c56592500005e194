"""Calls of functions as jobs, on a project without volunteers."""

import threading
from dataclasses import replace
from hashlib import md5

import pytest

from boinc_gahp import Parameters
from boinc_gahp.api.futures import functions
from boinc_gahp.errors import BadRequest, BatchConflict, GahpError
from boinc_gahp.functions.payload import PYTHON, shared_files
from boinc_gahp.states import BatchState
from tests import faultproxy
from tests.helpers import at_once
from tests.localproject.in_containers import local_project  # noqa: F401  (a fixture)


@pytest.fixture
def project(site, monkeypatch):
    monkeypatch.chdir(site.directory)
    return site.project


def scale(number, factor=2.0):
    return number * factor


@pytest.fixture
def function(project):
    return project.function(scale)


def test_calls_are_jobs_of_one_batch_which_share_their_files(function):
    futures = function.map(range(300))
    assert function.image == f"python:{PYTHON}-slim"
    assert futures.batch.njobs == len(futures) == 300
    assert futures[7].parameters == {"number": 7}
    jobs = [futures.batch[future.job_name] for future in futures]
    names = {name for job in jobs for name in job.inputs}
    assert {name for name in names if name.endswith(".pkl")} == {
        f"work/{function._payload.file_name}"
    }
    files = {item.md5 for job in jobs for item in job.inputs.values()}
    assert len(files) < 12


def test_a_large_argument_is_a_file_that_equal_calls_share(function):
    large = list(range(100_000))
    futures = function.starmap([(large, 1), (large, 2), (large, 2)])
    found = [
        item.md5
        for future in futures
        for name, item in futures.batch[future.job_name].inputs.items()
        if name.startswith("work/arguments-")
    ]
    assert len(found) == 3
    assert len(set(found)) == 2


def test_the_same_calls_are_the_same_batch_and_others_are_another(project, function):
    first = function.map([1, 2])
    assert function.map([1, 2]).batch.id == first.batch.id
    assert project.function(scale).map(iter([1, 2])).batch.id == first.batch.id
    others = [
        function.map([1, 3]),
        function.map([1, 2, 3]),
        function.map([1, 2], [2.0, 2.0]),
        function.map([1.0, 2.0]),
        project.function(scale, image="python:3.9").map([1, 2]),
        project.function(scale, environment={"A": "b"}).map([1, 2]),
        project.function(scale, cpus=2).map([1, 2]),
        project.function(scale, parameters=Parameters(memory_bound="3GB")).map([1, 2]),
    ]
    ids = {each.batch.id for each in others} | {first.batch.id}
    assert len(ids) == len(others) + 1
    assert first.batch.name.startswith("scale-")


def test_other_pickles_and_another_cloudpickle_find_the_same_batch(function, monkeypatch):
    first = function.map([1])
    function._payload = replace(function._payload, content=function._payload.content + b"more")
    monkeypatch.setattr(functions, "shared_files", lambda: dict.fromkeys(shared_files(), b"x"))
    assert function.map([1]).batch.id == first.batch.id


def test_the_same_name_with_another_function_or_other_calls_is_refused(project, function):
    first = function.map([1, 2], name="numbers")
    again = function.map([1, 2], name="numbers")
    assert (again.batch.id, again.batch.existed) == (first.batch.id, True)
    in_another_image = project.function(scale, image="python:3.9")
    for each, calls, words in (
        (function, [1, 3], "arguments of 1 call, first of call 1"),
        (function, [1, 2, 3], "the number of calls"),
        (in_another_image, [1, 2], "the image, the input files or the options"),
        (project.function(abs), [1, 2], "the function abs"),
    ):
        with pytest.raises(BatchConflict, match=f"{words}; give"):
            each.map(calls, name="numbers")


def test_an_input_file_that_has_changed_makes_another_batch(project, tmp_path):
    (tmp_path / "data.csv").write_text("1")
    function = project.function(scale, inputs=["data.csv"])
    first = function.map([1])
    named = function.map([1], name="scales")
    (tmp_path / "data.csv").write_text("two")
    assert function.map([1]).batch.id != first.batch.id
    with pytest.raises(BatchConflict, match="the image, the input files or the options; give"):
        function.map([1], name="scales")
    (tmp_path / "data.csv").write_text("1")
    assert function.map([1], name="scales").batch.id == named.batch.id


def test_a_name_of_a_batch_that_ran_no_function_is_refused(project, function, tmp_path):
    (tmp_path / "fit.sh").write_text("#!/bin/sh\n")
    project.run("./fit.sh", image="debian:12", name="fits")
    with pytest.raises(BatchConflict, match="the function scale; give"):
        function.map([1], name="fits")


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([], "there are no calls of scale"),
        ([3], r"calls\[0\] is of the type int: expected a tuple"),
        (["ab"], r"calls\[0\] is of the type str: expected a tuple"),
        ([(1, 2, 3)], r"scale\(number, .* has wrong arguments: too many positional"),
        ([{"nothing": 1}], "wrong arguments: missing a required argument"),
        ([(threading.Lock(),)], "the arguments of scale cannot be sent"),
    ],
    ids=["none", "number", "text", "many", "name", "lock"],
)
def test_wrong_calls_are_refused_before_anything_is_sent(calls, words, project, function):
    with pytest.raises(BadRequest, match=words):
        function.starmap(calls)
    assert project.batches() == ()


def test_a_single_call_with_wrong_arguments_is_refused(function):
    with pytest.raises(BadRequest, match="too many positional arguments"):
        function(1, 2, 3)  # type: ignore[call-arg, arg-type, unused-ignore]
    with pytest.raises(BadRequest, match="argument 2 of map is of the type int: expected a list"):
        function.map([1], 2)  # type: ignore[arg-type, unused-ignore]
    with pytest.raises(BadRequest, match="an iterable for each argument"):
        function.map()


def test_what_the_batch_keeps_of_a_call_is_for_people(function):
    futures = function.starmap([(3, 0.5), ({"a": list(range(1000))},)])
    [first, second] = futures.batch.to_records()
    assert (first["number"], first["factor"]) == (3, 0.5)
    assert len(str(second["number"])) < 80
    assert "base64" not in str(first)


def test_processes_that_make_the_same_calls_at_once_get_the_same_batch(project):
    # Of sets, and of classes of a script, each process makes another pickle.
    functions = [project.function(scale) for _ in range(4)]
    for number, each in enumerate(functions):
        each._payload = replace(each._payload, content=each._payload.content + bytes([number]))
    assert len(set(at_once(lambda each: each.map(range(50)).batch.id, functions))) == 1
    assert [batch.njobs for batch in project.batches()] == [50]


def test_calls_whose_submit_was_cut_are_completed_as_they_were_sent(site, function):
    site.proxy.fail("submit_batch", faultproxy.status(503), times=None)
    first = site.open(retry=0).function(scale)
    with pytest.raises(GahpError, match="asked to take the jobs"):
        first.map(range(5))
    site.proxy.heal()
    [half] = site.project.batches()
    assert (half.state, half.njobs) == (BatchState.INIT, 0)
    function._payload = replace(function._payload, content=function._payload.content + b"other")
    futures = function.map(range(5))
    assert (futures.batch.id, futures.batch.njobs) == (half.id, 5)
    assert [future.parameters["number"] for future in futures] == list(range(5))
    name = f"work/{first._payload.file_name}"
    sent = {futures.batch[each.job_name].inputs[name].md5 for each in futures}
    assert sent == {md5(first._payload.content).hexdigest()}
