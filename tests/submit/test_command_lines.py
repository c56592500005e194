"""Arguments: what was written is what the program gets, or it is refused."""

import re

import pytest
from hypothesis import example, given, strategies as st

from boinc_gahp.errors import BadRequest, JobRefused
from boinc_gahp.localproject.backend.new_job import read_job_line, split_command_line, through_sql
from boinc_gahp.localproject.server.messages import parse_request
from boinc_gahp.rpc import command_lines, types
from boinc_gahp.rpc._build import submission_document
from boinc_gahp.secret import Authenticator
from boinc_gahp.submit import checks
from boinc_gahp.templates.documents import read_workunit
from boinc_gahp.templates.filling import fill_input
from boinc_gahp.templates.types import InputFileInfo, InputTemplate

#: What has a meaning to one of those that the text passes, and what has none.
_PIECES = [
    *"ab0 \t'\"\\<>&;#ä中",
    *["&lt;", "&amp;", "&#228;", "<!--", "]]>", "<?pi", "</command_line>"],
]
arguments = st.lists(
    st.lists(st.sampled_from(_PIECES), max_size=5).map("".join)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    max_size=5,
)


def stored(line):
    """Return what a project stores of a job's command line, by way of the request itself."""
    batch = types.BatchSubmission("a", [types.JobSubmission("j", line)])
    request = parse_request(submission_document("submit_batch", Authenticator("a" * 32), batch))
    sent = request.child("batch").children("job")[0].text("command_line")
    words = f'--command_line "{sent}"' if sent not in ("", "0") else ""
    (job,) = read_job_line(f" --wu_name j {words} file")
    assert job.files == ("file",)
    template = InputTemplate((InputFileInfo("in", physical_name="file"),))
    line_stored = through_sql(job.command_line or "")
    return fill_input(template, command_line=line_stored)


#: A word as the client splits that was seen: it skips the character after an opening quote.
SEEN = re.compile(r"""'(.?[^']*)'?|"(.?[^"]*)"?|([^ \t\n\v\f\r]+)""", re.DOTALL)
#: A word as a client would split that does not have that fault.
MEANT = re.compile(r"""'([^']*)'?|"([^"]*)"?|([^ \t\n\v\f\r]+)""", re.DOTALL)


def split(word, text):
    return ["".join(groups) for groups in word.findall(text)]


@given(arguments, st.booleans())
@example(["a<b", "<?pi", "<!--", "&lt;x", "&amp;", "a&b", "a>b", "]]>"], False)
@example(["", "after"], True)
@example(["0"], False)
@example(["it's", "C:\\dir", "two words", "&lt; 'x"], True)
@example(["\xa0", "a\u3000b"], False)
def test_a_program_gets_its_arguments_as_they_were_written_or_they_are_refused(words, doubled):
    try:
        line = command_lines.command_line(words, doubled=doubled)
    except BadRequest:
        return
    document = read_workunit(stored(line))
    assert split_command_line(document.command_line) == words
    assert split(SEEN, document.command_line) == words
    assert split(MEANT, document.command_line) == words
    # No client chokes on it, and with it on the jobs of others.
    assert "<" not in document.stored_command_line


@given(st.text(st.sampled_from("a' \"\t\n\xa0"), max_size=12))
def test_a_local_host_splits_as_the_client_that_was_seen(text):
    if text.endswith(("'", '"')):
        text += "x"  # the real one reads on behind the text's end
    assert split_command_line(text) == split(SEEN, text)


@pytest.mark.parametrize("doubled", [False, True])
def test_an_empty_argument_is_refused_and_no_setting_is_said_to_help(doubled):
    with pytest.raises(BadRequest, match="is empty") as caught:
        command_lines.command_line(["--name", "", "x"], doubled=doubled)
    assert "escape_command_lines" not in str(caught.value)


def test_the_limit_of_a_jobs_line_counts_what_is_sent():
    line = checks.command_line("j", ("<" * 1000,), escape=False)
    assert len(line) == 4000
    with pytest.raises(JobRefused, match="come to 4112 bytes"):
        checks.check_job_line("j", line, ["f" * 80])


def test_a_command_line_at_which_clients_refuse_the_jobs_of_others_is_not_sent():
    batch = types.BatchSubmission("a", [types.JobSubmission("j7", "--tag <b>")])
    with pytest.raises(BadRequest, match=r"job 'j7': command_line .* contains a <"):
        submission_document("submit_batch", Authenticator("a" * 32), batch)
