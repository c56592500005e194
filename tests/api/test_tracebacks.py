"""What a person sees who works with the Python API at a prompt."""

from __future__ import annotations

import inspect
import logging
import os
import subprocess
import sys
import traceback
from typing import TYPE_CHECKING

import pytest

import boinc_gahp
from boinc_gahp import Job, Project, jobs_from
from boinc_gahp.config import Settings, Timeouts
from boinc_gahp.errors import BadRequest, GahpError, NoSuchJob, TransportError
from boinc_gahp.tracebacks import concise, concise_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.api.conftest import Site

#: Of the caller's two frames here and the one that raises, each with its place, code and marks.
_MOST_LINES = 14

MISTAKES: dict[str, Callable[[Project, Path], object]] = {
    "app": lambda project, file: project.submit("upercase", [Job(inputs={"in": file})]),
    "input": lambda project, file: project.submit("uppercase", [Job(inputs={"inn": file})]),
    "file": lambda project, _: project.submit("uppercase", [Job(inputs={"in": "nosuch.txt"})]),
    "type": lambda project, _: project.submit("uppercase", [3]),  # type: ignore[list-item]
    "order": lambda project, _: project.submit([Job()], "uppercase"),  # type: ignore[arg-type]
    "refused": lambda project, file: project.submit(
        "uppercase", [Job(args=["x" * 100_000], inputs={"in": file})]
    ),
    "batch": lambda project, _: project.batch("nosuch"),
    "key": lambda project, _: Project(project.url, "0" * 32).batches(),
    "url": lambda _project, _file: Project("htp://x", "0" * 32),
    "row": lambda _project, _file: jobs_from([{"a": 1}], args="{b}"),
    "unit": lambda project, file: project.submit(
        "uppercase", [Job(memory="2", inputs={"in": file})]
    ),
    "settings": lambda _project, _file: Project.from_settings("nosuch"),
}


def shown(act: Callable[[], object]) -> tuple[BaseException, list[str]]:
    """Return the error that something raises, and the lines that Python prints."""
    try:
        act()
    except (GahpError, TimeoutError) as error:
        # The first frame is this function's, in the place of the prompt.
        return error, traceback.format_exc().rstrip("\n").split("\n")
    raise AssertionError("it went well")


@pytest.mark.parametrize("name", MISTAKES)
def test_a_common_mistake_is_told_in_a_few_lines(site: Site, tmp_path: Path, name: str) -> None:
    file = tmp_path / "in.txt"
    file.write_text("x")
    error, lines = shown(lambda: MISTAKES[name](site.project, file))
    frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert frames == ["shown", "<lambda>", "<lambda>", "called"]
    assert sum(line.startswith("Traceback") for line in lines) == 1
    assert len(lines) <= _MOST_LINES
    assert lines[-1].endswith(str(error))


def test_a_project_that_is_down_is_told_without_the_librarys_errors() -> None:
    def ask() -> None:
        with Project("http://127.0.0.1:9/test/", "0" * 32, settings=quick) as project:
            project.batches()

    quick = Settings(timeouts=Timeouts(retry=0.1))
    error, lines = shown(ask)
    assert isinstance(error, TransportError)
    assert "urllib3" not in "\n".join(lines)
    # A debugger finds them.
    assert error.__context__ is not None


def test_a_wait_that_takes_too_long_is_told_in_a_few_lines(site: Site) -> None:
    batch = site.batch(1)
    error, _ = shown(lambda: batch.wait(timeout=0.01))
    assert isinstance(error, TimeoutError)
    assert len(traceback.extract_tb(error.__traceback__)) == 3


class _Api:
    """Raises in every way that a method can."""

    def __init__(self, number: int) -> None:
        if number < 0:
            raise BadRequest("negative")

    def method(self) -> None:
        self.inner()

    def inner(self) -> None:
        raise BadRequest("wrong") from KeyError("cause")

    def steps(self) -> Iterator[int]:
        yield 1
        raise NoSuchJob("no such job")

    @property
    def value(self) -> int:
        raise TimeoutError("late")

    @classmethod
    def made(cls) -> _Api:
        return cls(-1)

    def bug(self) -> None:
        raise ZeroDivisionError

    def _hidden(self) -> None:
        raise BadRequest("internal")


concise(_Api)


@pytest.mark.parametrize(
    "act",
    [
        lambda: _Api(-1),
        lambda: _Api(1).method(),
        lambda: list(_Api(1).steps()),
        lambda: _Api(1).value,
        lambda: [_Api.made()],
    ],
    ids=["init", "method", "generator", "property", "classmethod"],
)
def test_only_the_callers_frames_are_left(act: Callable[[], object]) -> None:
    error, _ = shown(act)
    frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert frames[:2] == ["shown", "<lambda>"]
    assert len(frames) == 3


def test_a_bug_keeps_its_whole_traceback() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        _Api(1).bug()
    assert caught.traceback[-1].name == "bug"


def test_what_the_caller_was_handling_is_still_told() -> None:
    def act() -> None:
        try:
            int("mine")
        except ValueError:
            _Api(1).method()

    error, lines = shown(act)
    assert isinstance(error.__context__, ValueError)
    assert "ValueError: invalid literal for int() with base 10: 'mine'" in lines


def test_the_log_has_the_whole_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "boinc_gahp"):
        shown(_Api(1).method)
    assert "in inner" in caplog.text
    assert "KeyError: 'cause'" in caplog.text


def test_names_signatures_and_results_stay() -> None:
    @concise_function
    def add(one: int, *, two: int = 2) -> int:
        """Add."""
        return one + two

    assert (add(1), add.__name__, add.__doc__) == (3, "add", "Add.")
    assert str(inspect.signature(add)) == "(one: 'int', *, two: 'int' = 2) -> 'int'"
    assert next(_Api(1).steps()) == 1


def test_tab_offers_what_a_user_needs_and_nothing_internal(site: Site) -> None:
    assert set(dir(boinc_gahp)) == {*boinc_gahp.__all__, "errors"}
    for thing, wanted, internal in (
        (site.project, {"submit", "batch", "batches", "app", "plan"}, {"session"}),
        (site.batch(1), {"wait", "fetch", "jobs", "failures", "abort"}, {"see", "vanish"}),
    ):
        offered = {name for name in dir(thing) if not name.startswith("_")}
        assert wanted <= offered
        assert not offered & internal
        assert all(hasattr(thing, name) for name in offered)
        described = {name for name in offered if ":meta private:" in str(_doc(thing, name))}
        assert described == set()


def _doc(thing: object, name: str) -> str | None:
    return inspect.getdoc(inspect.getattr_static(type(thing), name, None))


@pytest.mark.processes
def test_ipython_shows_the_line_that_was_typed_and_the_error_and_no_code_of_ours(
    tmp_path: Path,
) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", "-c", _IN_IPYTHON],
        env={**os.environ, "IPYTHONDIR": str(tmp_path), "HOME": str(tmp_path)},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    shown = run.stdout + run.stderr
    assert "jobs_from('nosuch.csv')" in shown
    assert "WrongRow: nosuch.csv: the file with the rows cannot be opened" in shown
    assert "tracebacks.py" not in shown
    assert "Unexpected" not in shown


_IN_IPYTHON = "from boinc_gahp import jobs_from\njobs_from('nosuch.csv')"
