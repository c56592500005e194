import re

import pytest

from boinc_gahp._version import RELEASE_DATE, __version__
from boinc_gahp.gahp.banner import BANNER, VERSION_TEXT
from boinc_gahp.gahp.command import Request, help_text
from boinc_gahp.gahp.commands import COMMANDS, parse_request

#: ``gahp.rst``, "BOINC_* commands"; ``gridmanager-batch.rst``, "Start-up" and "Result lines".
SYNTAX = """\
BOINC_PING id
BOINC_SUBMIT id batch app njobs {job nargs arg... nfiles {src_path logical_name}...}... \
[rsc_fpops_est rsc_fpops_bound rsc_memory_bound rsc_disk_bound delay_bound app_version_num]
BOINC_QUERY_BATCHES id min_mod_time nbatches batch...
BOINC_FETCH_OUTPUT id job dir stderr_filename ALL|SOME nspecs {src dst}...
BOINC_ABORT_JOBS id job...
BOINC_RETIRE_BATCH id batch
BOINC_SET_LEASE id batch unix_time
BOINC_SELECT_PROJECT url authenticator
BLAH_PING id [batch_type]
BLAH_JOB_SUBMIT id ad
BLAH_JOB_STATUS id job_id
BLAH_JOB_CANCEL id job_id
BLAH_JOB_REFRESH_PROXY id job_id [proxy]
""".splitlines()


@pytest.mark.parametrize("line", SYNTAX, ids=lambda line: line.split()[0])
def test_the_syntax_of_a_command_is_that_of_the_specification(line):
    assert COMMANDS[line.split(maxsplit=1)[0]].syntax == line


def test_submits_and_fetches_keep_nothing_else_waiting():
    pools = {}
    for command in COMMANDS.values():
        if command.pool is not None:
            pools.setdefault(command.pool, set()).add(command.name)
    assert pools["work"] == {"BOINC_SUBMIT", "BOINC_FETCH_OUTPUT"}
    batches = {"BOINC_QUERY_BATCHES", "BOINC_RETIRE_BATCH", "BOINC_SET_LEASE"}
    assert pools["control"] == {"BOINC_PING", "BOINC_ABORT_JOBS", *batches}
    assert pools["accept"] == {"BLAH_JOB_SUBMIT"}
    assert pools["cancel"] == {"BLAH_JOB_CANCEL"}
    assert pools["status"] == {"BLAH_JOB_STATUS", "BLAH_PING", "BLAH_JOB_REFRESH_PROXY"}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_help_tells_syntax_arguments_and_answer(command):
    text = help_text(command)
    assert command.syntax in text
    assert " ".join(command.help.split()) in " ".join(text.split())
    for name in re.findall(r"[a-z_]+", command.syntax):
        assert re.search(rf"^ +{name} ", text, re.MULTILINE) or name in text
    assert "Answer: S" in text


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_examples_in_help_are_right(command):
    examples = re.findall(r"(?:Example: |:\n)([A-Z]+_.*)", command.help)
    for example in examples:
        assert parse_request(example.encode()).command == command.name
    assert examples or not command.name.startswith(("BOINC_", "BLAH_"))


def test_a_request_knows_its_command():
    classes = [Request]
    for cls in classes:
        classes += cls.__subclasses__()
    assert {cls.command for cls in classes if cls.command} == set(COMMANDS)


def test_the_banner_is_what_a_gridmanager_takes():
    assert BANNER.decode() == VERSION_TEXT + "\n"
    assert len(BANNER) <= 148
    assert re.fullmatch(
        r"\$GahpVersion: \d+\.\d+\.\d+ [A-Z][a-z]{2} \d\d \d{4} ([^ \\]|\\.)+ \$\n", BANNER.decode()
    )
    assert RELEASE_DATE in VERSION_TEXT
    assert __version__ in VERSION_TEXT
