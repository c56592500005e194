"""Words for states, spans and times."""

import argparse
import sys
from types import SimpleNamespace

import pytest

from boinc_gahp.cli.batch import states
from boinc_gahp.states import BatchState
from boinc_gahp.terminal import parsing, words
from tests.helpers import ran

_LIGHT = """
import sys
from boinc_gahp.cli import batch
from boinc_gahp.cli.batch import controlling, showing, waiting
batch.run_parser()
for make in (showing.list_batches_parser, showing.show_parser, waiting.wait_parser,
             controlling.abort_parser, controlling.retire_parser, controlling.extend_parser):
    make().format_help()
print([name for name in ("requests", "lxml", "rich", "boinc_gahp.rpc") if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("state", "failed", "text"),
    [
        (BatchState.IN_PROGRESS, 2, "running"),
        (BatchState.COMPLETE, 0, "complete"),
        (BatchState.COMPLETE, 2, "complete, 2 failed"),
        (BatchState.COMPLETE, 100, "complete, all failed"),
        (BatchState.ABORTED, 2, "aborted"),
    ],
)
def test_a_batch_that_is_complete_tells_how_many_failed(state, failed, text):
    batch = SimpleNamespace(state=state, nerror_jobs=failed, njobs=100)
    assert states.batch_words(batch)[0] == text


@pytest.mark.processes
def test_help_and_completion_import_nothing_that_takes_long():
    assert ran(sys.executable, "-c", _LIGHT).stdout == "[]\n"


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "", "٣", "9" * 30])
def test_what_is_no_number_of_things_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        parsing.whole_number(1, 1000, text)


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0, "0%"), (1e-9, "1%"), (0.5, "50%"), (0.9999, "99%"), (1, "100%"), (1.2, "100%")],
)
def test_only_what_is_whole_is_100_percent(fraction, text):
    assert words.percent(fraction) == text


def test_times_ago_and_ahead_are_in_words():
    assert words.ago(1000, 1003) == "just now"
    assert words.ago(1000, 990) == "just now"
    assert words.ago(0, 3 * 3600) == "3 h ago"
    assert words.ahead(3 * 86400, 0) == "about 3 days more"
