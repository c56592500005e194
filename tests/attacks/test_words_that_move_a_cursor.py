"""A project wants its words to do more to a terminal, an editor or a log than to be read."""

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.gahp import lines
from boinc_gahp.text import visible
from tests import faultproxy
from tests.cli.conftest import COMMAND
from tests.daemon.gridmanager import Gridmanager
from tests.daemon.process import Daemon
from tests.faultproxy import FaultProxy
from tests.helpers import ran
from tests.submit.scripted import batch

pytestmark = pytest.mark.processes

#: Colours, the title of a window and the clipboard; the same in C1; right to left; unseen.
ODD = "\x1b[31m \x1b]52;c;eA==\x07 \x9b2J \u202eexe.txt \u2066 \u200b \u2028 \r \x7f"
#: What XML may hold of it.
ODD_IN_XML = "\x9b2J \u202eexe.txt \u2066 \u200b \u2028 \x7f"


def refusal(text, rpc="query_batch2"):
    reply = f"<{rpc}><error><error_num>-1</error_num><error_msg>{text}</error_msg></error></{rpc}>"
    return faultproxy.body(reply.encode())


def page(text):
    return faultproxy.body(f"<html><title>{text}</title><body>{text}</body></html>".encode())


def statuses(status):
    return faultproxy.body(
        "<query_batch2><server_time>1795261323.5</server_time><batch_size>2</batch_size>"
        f"<job><job_name>b#1.0</job_name><status>{status}</status></job>"
        f"<job><job_name>another#1.1</job_name><status>{status}</status></job>"
        "</query_batch2>".encode()
    )


@pytest.fixture
def environ(project, tmp_path):
    with FaultProxy(project.url) as proxy:
        settings = tmp_path / ".config" / "boinc_gahp" / "boinc_gahp.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(
            '[logging]\nlevel = "debug"\n[timeouts]\nretry = 0.1\n'
            f'[project]\nurl = "{proxy.url}"\nauthenticator = "{project.authenticator}"\n'
        )
        settings.chmod(0o600)
        yield proxy, {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}


def check(text):
    """Lines of printable characters, and nothing else."""
    assert [line for line in text.split("\n") if not line.isprintable()] == []


def test_result_lines_and_the_log_have_what_can_be_seen_alone(environ, tmp_path):
    proxy, environment = environ
    faults = {
        "refusal": refusal(ODD),
        "refusal in XML": refusal(ODD_IN_XML),
        "name": refusal(f"no batch named {ODD_IN_XML}"),
        "page": page(ODD),
        "status": faultproxy.status(403, text=ODD.encode()),
        "statuses": statuses(ODD_IN_XML),
    }
    with Daemon([COMMAND], environ=environment, cwd=Path("/")) as daemon:
        gridmanager = Gridmanager(daemon)
        for fault in faults.values():
            proxy.heal()
            proxy.fail("query_batch2", fault, times=None)
            for word in gridmanager.do("BOINC_QUERY_BATCHES", "1795261323.5", "1", "b"):
                check(word)
        check(lines.decode(daemon.output))
        # But the gridmanager looks for the name that it asked for.
        proxy.heal()
        name = "never\u202eseen\u00a0"
        (error,) = gridmanager.do("BOINC_QUERY_BATCHES", "0", "1", name)
        assert error.endswith(f": no batch named {name}")
        daemon.end_input()
        assert daemon.end()[0] == 0
    (log,) = tmp_path.rglob("boinc_gahp.log")
    check(log.read_text())


def test_a_job_of_another_batch_is_left_out_of_a_query_and_that_is_reported_once(environ, tmp_path):
    proxy, environment = environ
    proxy.fail("query_batch2", statuses("DONE"), times=None)
    with Daemon([COMMAND], environ=environment, cwd=Path("/")) as daemon:
        gridmanager = Gridmanager(daemon)
        for _ in range(3):
            result = gridmanager.do("BOINC_QUERY_BATCHES", "1795261323.5", "1", "b")
            assert result == ["NULL", "1795261323.5", "1", "b#1.0", "DONE"]
    (log,) = tmp_path.rglob("boinc_gahp.log")
    said = [line for line in log.read_text().splitlines() if "are ignored" in line]
    assert len(said) == 1
    assert "another#1.1" in said[0]


@pytest.mark.parametrize("options", [["--json"], []], ids=["json", "text"])
def test_batch_prints_what_can_be_seen_alone(environ, options):
    proxy, environment = environ
    name = f"batch {ODD_IN_XML}"
    told = batch(7, name, 1).replace("uppercase", ODD_IN_XML)
    listed = f"<query_batches><batch>{told}</batch></query_batches>"
    proxy.fail("query_batches", faultproxy.body(listed.encode()), times=None)
    text = ran(COMMAND, "batch", "list", *options, env=environment).stdout
    check(text)
    if options:
        # A program reads what the project said.
        (found,) = json.loads(text)["batches"]
        assert found["name"] == name
    else:
        assert "u202e" in text


@given(st.text())
def test_a_text_is_printable_and_one_that_was_is_as_it_was(text):
    assert visible(text).isprintable()
    assert visible(visible(text)) == visible(text)
    if text.isprintable():
        assert visible(text) == text
