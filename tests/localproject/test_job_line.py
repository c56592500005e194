"""What create_work makes of a job's line: compared with what the real server stored."""

import json
import re

import pytest
from hypothesis import given, settings, strategies as st

from boinc_gahp.localproject.backend.create_work import NewJob, RemoteInput
from boinc_gahp.localproject.server.job_line import read_job_line, through_sql
from boinc_gahp.localproject.server.replies import RpcFailed
from tests.localproject.recordings import WIRE

FACTS = json.loads((WIRE / "FACT_command_lines.json").read_text("utf-8"))
SENT = FACTS["sent"]
STORED = FACTS["stored"]


def _stored(command_line):
    """Return what is kept of a job's command line; None if the job is refused."""
    line = f' --wu_name name --command_line "{command_line}" file.txt'
    try:
        jobs = read_job_line(line)
    except RpcFailed:
        return None
    if len(jobs) != 1 or jobs[0].files != ("file.txt",):
        return None
    try:
        return through_sql(jobs[0].command_line or "")
    except RpcFailed:
        return None


@pytest.mark.parametrize("case", sorted(SENT))
def test_a_recorded_command_line_is_kept_or_refused_as_on_the_real_server(case):
    sent = SENT[case].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")
    expected = STORED[case]["stored"]
    ours = _stored(sent)
    assert (None if ours is None else f"\n{ours}\n") == expected


@given(st.text(st.sampled_from("ab'\\ "), max_size=20))
def test_doubling_quotes_and_backslashes_keeps_them(command_line):
    """The workaround that ``web-rpcs.rst``, "Command lines" tells of."""
    doubled = re.sub(r"(['\\])", r"\1\1", command_line)
    assert through_sql(doubled) == command_line


@pytest.mark.parametrize("number", [99, 100])
def test_a_line_has_at_most_99_words(number):
    line = " ".join(["f"] * number)
    if number == 99:
        assert len(read_job_line(line)[0].files) == number
    else:
        with pytest.raises(RpcFailed):
            read_job_line(line)


# Lines, and the jobs that they are written for.

_WORD = st.text("abcXYZ019_.-", min_size=1, max_size=12).filter(lambda word: word[0] not in "-")
_LINE = st.text("ab -_=,;$é<&>'", min_size=1, max_size=30).filter(lambda text: text[0] not in "'\"")


@st.composite
def jobs_and_lines(draw):
    """Yield a job, and a line that create_work reads as that job."""
    words = []
    given = {}
    for option, name, values in (
        ("wu_name", "name", _WORD),
        ("command_line", "command_line", _LINE),
        ("priority", "priority", st.integers(-100, 100)),
        ("wu_template", "input_template", _WORD),
        ("result_template", "output_template", _WORD),
        ("target_host", "target_host", st.integers(1, 1000)),
        ("target_user", "target_user", st.integers(1, 1000)),
    ):
        value = draw(st.none() | values)
        if value is not None:
            given[name] = value
            text = f'"{value}"' if name == "command_line" else str(value)
            words.append([f"--{option}", text])
    files = []
    for file in draw(
        st.lists(_WORD | st.builds(RemoteInput, _WORD, st.integers(0, 10**9).map(float), _WORD))
    ):
        files.append(file)
        words.append([file] if isinstance(file, str) else ["--remote_file", *map(str, file)])
    # Files keep their order among themselves, and may stand anywhere between the options.
    rest = words[len(given) :]
    parts = []
    for part in draw(st.permutations(words[: len(given)])):
        parts.append(part)
        following = draw(st.integers(0, len(rest)))
        parts += rest[:following]
        rest = rest[following:]
    separators = st.sampled_from([" ", "  ", "\t"])
    text = "".join(word + draw(separators) for part in parts + rest for word in part)
    return NewJob(files=tuple(files), **given), text


@settings(max_examples=40)
@given(jobs_and_lines())
def test_a_line_is_read_as_the_job_that_it_was_written_for(case):
    job, line = case
    assert read_job_line(line) == ([job] if line else [])
