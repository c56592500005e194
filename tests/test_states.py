"""What jobs and batches are doing: one set of words, in the documentation, too."""

import re
from pathlib import Path

import pytest

from boinc_gahp import states
from boinc_gahp.ledger.rows import STATES
from boinc_gahp.localproject.contents import STATES as COUNTED
from boinc_gahp.localproject.states import ERROR_WORDS, BatchState as StoredState
from boinc_gahp.states import BatchState, JobState

DOCS = Path(__file__).parent.parent / "docs"
_RULE = re.compile(r"=+(?: +=+)+")


def table(page, head):
    """Return the rows of the table of a page whose first row is ``head``; no cell is broken."""
    lines = (DOCS / page).read_text("utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if re.split("  +", line.strip()) == head.split("|"))
    body = lines[at + 2 :]
    end = next(i for i, line in enumerate(body) if _RULE.fullmatch(line))
    return [re.split("  +", line.strip()) for line in body[:end]]


def test_the_guide_has_the_words_for_jobs_and_the_projects_words_for_them():
    rows = table("batch.rst", "job|project's word|meaning")
    assert {word: theirs for word, theirs, _ in rows} == {
        state.value: word for state, word in states.STATUS_WORDS.items()
    }
    assert {row[0] for row in rows} == {state.value for state in JobState} - {"unknown"}


def test_the_guide_has_the_words_for_batches():
    rows = table("batch.rst", "batch|meaning")
    assert [row[0] for row in rows] == [
        state.words for state in BatchState if state is not BatchState.UNKNOWN
    ]


def test_the_guide_for_admins_has_the_words_for_the_ledgers_states():
    assert table("htcondor-admins.rst", "name|state|HTCondor") == [
        [name, told.words, told.htcondor.words] for name, told in states.LEDGER_WORDS.items()
    ]
    assert tuple(states.LEDGER_WORDS) == STATES


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("UNSENT", JobState.QUEUED),
        ("QUEUED", JobState.QUEUED),
        ("queued", JobState.QUEUED),
        ("in_progress", JobState.IN_PROGRESS),
        ("DONE", JobState.DONE),
        ("error", JobState.FAILED),
        ("NOT_STARTED", JobState.UNKNOWN),
        ("", JobState.UNKNOWN),
    ],
)
def test_a_projects_word_has_one_meaning(word, state):
    assert states.job_state(word) is state


def test_the_local_project_has_the_same_states():
    assert list(COUNTED) == [state.name.lower() for state in states.STATUS_WORDS]
    assert {state.name: int(state) for state in StoredState}.items() <= {
        state.name: int(state) for state in BatchState
    }.items()


def test_every_word_of_the_local_project_for_an_error_is_explained():
    assert set(ERROR_WORDS.values()) <= states.ERROR_MEANINGS.keys()
