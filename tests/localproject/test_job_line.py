"""What create_work makes of a job's line: compared with what the real server stored."""

import json
import re

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.localproject.backend.new_job import read_job_line, through_sql
from boinc_gahp.localproject.errors import RpcFailed
from tests.contract.replay import WIRE

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
