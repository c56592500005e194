"""docs/troubleshooting.rst has every message that a user can see, and none that nobody sees.

A test that fails prints what to put onto the page, as it is to stand there.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from tests.messages import Source, normal

PAGE = Path(__file__).parent.parent / "docs" / "troubleshooting.rst"

#: Where a message is another's text, or made of what the source does not hold, and why that is so.
PASSED_ON = {
    ("bridge/checks.py", "command_line"): "which job, and the error's own text",
    ("blah/failures.py", "fail"): "the project's words, and a table: below 'Failed jobs'",
    ("blah/sending_verdict.py", "hold_for"): "the error's own text",
    ("cli/batch/job_options.py", "_shared_inputs"): "which option, and the error's own text",
    ("cli/batch/job_options.py", "read_options"): "which option, and the error's own text",
    ("cli/batch/submitting.py", "_placed"): "which row, and the error's own text",
    ("cli/demo.py", "_demonstrate"): "the error's own text",
    ("cli/demo_batch.py", "judged"): "what the daemon answered",
    ("cli/local_project/arguments.py", "explained"): "the error's own text, or the system's",
    ("cli/local_project/arguments.py", "refused"): "the words of the local project's RPC",
    ("cli/local_project/behaving.py", "set_host"): "the error's own text",
    ("cli/local_project/working.py", "_template"): "the template's problems",
    ("cli/points.py", "_ledger_points"): "the error's own text",
    ("cli/points.py", "directory_points"): "a point's own text",
    ("cli/project_points.py", "_app_points"): "the error's own text",
    ("cli/monitoring.py", "_look_at_ledger"): "what the ledger has, as ledger list shows it",
    ("cli/monitoring.py", "look"): "the error's own text",
    ("cli/project_points.py", "_size_point"): "the error's own text",
    ("cli/template.py", "check"): "the error's own text",
    ("config/accounts.py", "no_authenticator"): "why there is none, as config/layers.py says it",
    ("config/reading.py", "_read_two_lines"): "where it is, and a ValueError's text",
    ("daemon/console.py", "run"): "a bug's own text",
    ("ledger/store.py", "_translated"): "a bug's own text",
    ("remote/request.py", "_words"): "which job, and the error's own text",
    ("remote/row_values.py", "wrong"): "which row, and the error's own text",
    ("rpc/border.py", "_judged"): "a rule's text, which is collected where the rules are",
    ("templates/checking.py", "_check_one"): "a problem's own text",
}


@pytest.fixture(scope="module")
def source() -> Source:
    return Source()


def on_the_page() -> list[str]:
    """Return the messages that the page lists."""
    return [
        normal(text) for text in re.findall(r"^\* ``(.+?)``", PAGE.read_text("utf-8"), re.M | re.S)
    ]


def as_rst(text: str) -> str:
    """Return the item of the page's lists for a message."""
    return textwrap.fill(
        f"* ``{text}``",
        100,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def test_every_message_of_the_source_is_on_the_page(source: Source) -> None:
    listed = set(on_the_page())
    messages = source.messages()
    missing = sorted((messages[text][0].file, text) for text in messages.keys() - listed)
    told = "".join(f".. {file}\n{as_rst(text)}\n" for file, text in missing)
    assert not missing, f"put these into docs/troubleshooting.rst:\n\n{told}"


def test_every_message_on_the_page_is_in_the_source(source: Source) -> None:
    gone = set(on_the_page()) - source.messages().keys()
    told = "\n".join(map(as_rst, sorted(gone)))
    assert not gone, f"these are no longer said, so take them off docs/troubleshooting.rst:\n{told}"


def test_no_message_is_on_the_page_twice() -> None:
    listed = on_the_page()
    assert [text for text in listed if listed.count(text) > 1] == []


def test_where_a_message_cannot_be_read_from_the_source_there_is_a_reason(source: Source) -> None:
    found = {(place.file, place.function) for place in source.passed_on()}
    assert found == PASSED_ON.keys()


def test_messages_that_are_put_together_in_several_places_are_found_whole(source: Source) -> None:
    found = source.messages()
    # A variable of the function; a parameter; a constant; a method's result.
    assert any(t.startswith('argument … holds a "') for t in found)
    assert "the ledger … cannot be …: it is no ledger: move it away" in found
    assert any(t.endswith("condor_release sends it again, as a new job") for t in found)
    assert any(t.startswith("… of …: an answer that lacks") for t in found)
