"""The client's wrapper around a job's stderr."""

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.fetch.job_end import unwrap


def wrap(text, message=""):
    """Return stderr as query_completed_job gives it (wire/query_completed_job__success)."""
    if message:
        message = f"<message>\n{message}\n</message>\n"
    return (
        "\n<core_client_version>7.20.5</core_client_version>\n<![CDATA[\n"
        f"{message}<stderr_txt>\n{text}\n</stderr_txt>\n]]>\n   "
    )


def test_the_recorded_wrapper_comes_off():
    text = "starting uppercase args: \ncalled boinc_finish(0)\n"
    assert unwrap(wrap(text)) == text


def test_the_clients_message_is_part_of_the_wrapper():
    assert unwrap(wrap("Segfault\n", "process exited with code 193 (0xc1, -63)")) == "Segfault\n"


BEGIN = "<core_client_version>8.0</core_client_version>\n<![CDATA[\n"
OTHERS = {
    "empty": ("", ""),
    "no wrapper": ("plain words\n", "plain words\n"),
    "no wrapper, leading blanks": ("  indented\n", "  indented\n"),
    "no stderr": (f"{BEGIN}]]>", ""),
    "a message only": (f"{BEGIN}<message>\nlost\n</message>", ""),
    "no version": ("<stderr_txt>\nx\n</stderr_txt>\n", "x"),
    "cut at its end": (f"{BEGIN}<stderr_txt>\nlong te", "long te"),
    "end tag lost": (f"{BEGIN}<stderr_txt>\nlong te\n]]>", "long te"),
    "tag in the text": ("talks of <stderr_txt> itself\n", "talks of <stderr_txt> itself\n"),
}


@pytest.mark.parametrize(("text", "expected"), OTHERS.values(), ids=OTHERS)
def test_other_texts(text, expected):
    assert unwrap(text) == expected


@given(st.text())
def test_whatever_a_job_wrote_comes_back(text):
    assert unwrap(wrap(text)) == text


@given(st.text().map(lambda text: f"{text}</stderr_txt>\n<stderr_txt>{text}"), st.text(max_size=20))
def test_tags_in_the_jobs_own_text_change_nothing(text, message):
    assert unwrap(wrap(text, message.replace("<", ""))) == text


@given(st.text())
def test_any_text_is_unwrapped_without_an_error(text):
    assert isinstance(unwrap(text), str)
