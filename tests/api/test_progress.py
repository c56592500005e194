"""Progress that is shown where somebody looks: on a terminal, in a notebook; nothing in a pipe."""

import re
import sys
import threading
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import pytest

from boinc_gahp.api import progress as progress_module
from boinc_gahp.errors import BadRequest
from boinc_gahp.states import BatchState
from boinc_gahp.submit.types import InlineFile, Job
from tests.api.conftest import QUICK
from tests.helpers import wait_for
from tests.terminal.screen import Terminal


def work(site, directory):
    """Submit, wait and fetch with progress=True."""
    jobs = [Job(inputs={"in": InlineFile("x")}) for _ in range(4)]
    batch = site.project.submit("uppercase", jobs, name=directory.name, progress=True)
    batch.wait(timeout="1min", poll=QUICK, progress=True)
    batch.fetch(directory, progress=True)
    return batch


@contextmanager
def terminal(monkeypatch):
    """Make stderr a terminal; give a function that returns what was written so far."""
    with Terminal(100) as made, monkeypatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setattr("sys.stderr", made.stream)
        yield lambda: made.plain


class Notebook:
    """Plays the part of IPython in a notebook's kernel.

    Attributes:
        shown: the HTML of each display, which updates replace.
        updates: how often a display was made or updated.
    """

    def __init__(self, monkeypatch, *, kernel):
        self.shown = []
        self.updates = 0
        package = ModuleType("IPython")
        package.get_ipython = lambda: SimpleNamespace(kernel=kernel)
        display = ModuleType("IPython.display")
        display.HTML = str
        display.display = self._display
        monkeypatch.setitem(sys.modules, "IPython", package)
        monkeypatch.setitem(sys.modules, "IPython.display", display)

    def _display(self, html, *, display_id):
        assert display_id
        place = len(self.shown)
        self.shown.append(html)
        self.updates += 1

        def update(html):
            self.shown[place] = html
            self.updates += 1

        return SimpleNamespace(update=update)


def test_a_pipe_gets_nothing(working, tmp_path, capfd):
    assert work(working, tmp_path / "piped").state is BatchState.COMPLETE
    assert capfd.readouterr() == ("", "")


def test_a_terminal_shows_live_lines_on_stderr(working, tmp_path, monkeypatch):
    working.local.pause_volunteers()
    with terminal(monkeypatch) as told:

        def resume():
            wait_for(lambda: re.search(r"shown .*\d%  .*4 waiting", told()), "how many jobs wait")
            working.local.resume_volunteers()

        resuming = threading.Thread(target=resume)
        resuming.start()
        work(working, tmp_path / "shown")
        resuming.join(60)
    text = told()
    assert "sending jobs" in text
    assert "fetching" in text
    assert "4 of 4 jobs" in text


def test_a_notebook_shows_one_bar_for_each_call(working, tmp_path, monkeypatch):
    notebook = Notebook(monkeypatch, kernel=object())
    work(working, tmp_path / "noted")
    sent, waited, fetched = notebook.shown
    assert "<b>sending jobs</b> 4 of 4 jobs" in sent
    assert '<progress max="1" value="1.0000"></progress> 100% <b>noted</b>' in waited
    assert waited.endswith("complete: 4 done</div>")
    assert "<b>fetching</b> 4 of 4 jobs" in fetched


def test_a_notebook_is_not_updated_all_the_time(monkeypatch):
    notebook = Notebook(monkeypatch, kernel=object())
    # The machine has just been started.
    now = 0.0
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr(progress_module, "time", clock)
    bar = progress_module._Notebook()
    updates = []
    for now in (0.0, 0.1, 0.2, 0.3, 0.4):
        bar.show("fetching", 10 * now, 4)
        updates.append(notebook.updates)
    assert updates == [1, 1, 1, 2, 2]
    bar.end()
    assert "<b>fetching</b> 4<" in notebook.shown[0]


@pytest.mark.parametrize(("progress", "kernel"), [(True, None), (False, object())])
def test_nothing_is_shown_on_a_pipe_of_ipython_or_unasked(progress, kernel, monkeypatch, capfd):
    notebook = Notebook(monkeypatch, kernel=kernel)
    with progress_module.shown(progress, progress_module.StepView) as report:
        assert report is None
    assert notebook.shown == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("method", ["plan", "submit_split"])
def test_everything_that_takes_progress_takes_true(site, method, monkeypatch):
    notebook = Notebook(monkeypatch, kernel=object())
    (site.directory / "in.txt").write_text("x")
    job = Job(inputs={"in": site.directory / "in.txt"})
    assert getattr(site.project, method)("uppercase", [job], progress=True)
    assert notebook.shown


@pytest.mark.parametrize("wrong", [1, "yes"])
def test_progress_that_is_no_function_is_refused_in_words(wrong):
    with (
        pytest.raises(BadRequest, match=f"progress is {wrong!r}: expected True or a function"),
        progress_module.shown(wrong, progress_module.StepView),
    ):
        pass
