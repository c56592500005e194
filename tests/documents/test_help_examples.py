"""The examples that ``--help`` shows, and with it the reference and the manual page, do work.

They run in one shell, in a home with a local project, in an order in which each finds what it
needs. Of those that are not run it is said who answers for them.
"""

import pytest

from boinc_gahp.cli import all_parsers
from tests.documents.examples import Command
from tests.documents.sandbox import LIMIT, Sandbox

#: By their beginnings.
NOT_RUN = {
    "source <(boinc_gahp completion": "tests/install/test_completion.py has it, in each shell",
    "boinc_gahp completion": "likewise",
    "boinc_gahp batch retry sweep --job": "needs failed jobs: tests/cli/batch/test_retry.py",
    "boinc_gahp batch run --image python:3.12-slim --each": "needs a container engine: "
    "tests/api/test_containers_programs.py",
    "boinc_gahp login": "needs a project with https; tests/cli/test_login.py has another",
    "boinc_gahp demo": "tests/cli/test_demo.py",
    "boinc_gahp page": "serves until it is stopped: tests/cli/test_page.py",
    "boinc_gahp ledger show": "needs jobs of HTCondor; tests/cli/test_ledger.py has some",
    "boinc_gahp ledger forget 12.0": "likewise",
    "boinc_gahp ledger status --textfile": "tests/cli/test_ledger_textfile.py",
    "boinc_gahp ledger move": "needs a project that has moved: tests/htcondor/test_moving.py",
    "boinc_gahp local-project run ~/project --": "the project runs already",
    "boinc_gahp local-project status ~/project --json | jq": "jq is not everywhere",
}

#: The commands in an order in which each finds what it needs.
ORDER = """\
local-project init, local-project run, check, apps, login, , local-project, local-project status,
local-project add-user, local-project add-app, local-project stage-file, local-project behave,
local-project set-host, template, template check, batch submit, batch list, batch estimate,
batch wait, batch show, batch fetch, batch logs, batch retry, batch, batch extend, batch abort,
batch retire, batch run, local-project create-work, ledger, ledger status, ledger show,
ledger reconcile, ledger move, ledger forget, page, files, completion, demo
"""

#: What the examples of a command need and do not make.
BEFORE = {
    "check": [
        "export BOINC_GAHP_CONFIG=~/project/boinc_gahp.toml",
        "sed 's/^.project./[projects.astro]/' ~/project/boinc_gahp.toml > ~/astro.toml",
        "chmod 600 ~/astro.toml; until boinc_gahp check >/dev/null; do sleep 0.1; done",
        "boinc_gahp local-project add-app ~/project docker --container",
    ],
    "local-project add-app": ["echo FROM scratch > Dockerfile; touch fit.sh fit.py"],
    "local-project stage-file": ["for i in data1.txt data2.txt big.dat; do echo $i > $i; done"],
    "template": ["cp -r ~/project/templates . && cp templates/uppercase_in ."],
    "batch submit": [
        "mkdir data; echo one > data.txt; cp data.txt data/one.txt",
        "(echo name,input:in; for i in 7 8 9; do echo other_00$i,data.txt; done) > jobs.csv",
        # The batch of params.csv is 12, too; its jobs are called as sweep_007.
        "(echo seed,path; for i in $(seq 0 100); do echo $i,data.txt; done) > params.csv",
        "for i in 1 2 3 4 5 6 7 8 9; do boinc_gahp batch submit uppercase --each data.txt; done",
    ],
    "batch list": [
        "boinc_gahp batch submit uppercase --input in=data.txt --name sweep2",
        "mkdir -p ~/.config/boinc_gahp/projects.d",
        "for i in astro climate; do sed s/^.project./[projects.$i]/ ~/project/boinc_gahp.toml"
        " > ~/.config/boinc_gahp/projects.d/$i.toml; done",
        "chmod 600 ~/.config/boinc_gahp/projects.d/*.toml",
    ],
    "batch run": ["for i in fit.py scan model.toml; do cp data.txt $i; done"],
}


def steps():
    """Return what is run: each example once, after what it needs."""
    shown = {" ".join(path): parser.examples for path, parser in all_parsers().items()}
    order = [command.strip() for command in ORDER.split(",")]
    assert shown.keys() == set(order) >= BEFORE.keys()
    every = [line for examples in shown.values() for line in examples]
    assert [each for each in NOT_RUN if not any(line.startswith(each) for line in every)] == []
    lines = {}
    for command in order:
        lines |= dict.fromkeys(BEFORE.get(command, []))
        for example in shown[command]:
            if example == "boinc_gahp local-project run ~/project":
                lines[f"{example} &"] = None
            elif not example.startswith(tuple(NOT_RUN)):
                lines[example] = None
    return [Command(line, None) for line in lines]


@pytest.mark.processes
@pytest.mark.timeout(LIMIT)
def test_the_examples_of_help_do_work(tmp_path):
    todo = steps()
    sandbox = Sandbox(tmp_path)
    sandbox.run(todo)
    for number, command in enumerate(todo):
        status, output = sandbox.result(number)
        assert status == 0, f"$ {command.line}\n{output}\n(status {status})"
