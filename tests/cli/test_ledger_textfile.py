"""The file that ``boinc_gahp ledger status --textfile`` writes for Prometheus' node_exporter."""

import os
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from boinc_gahp.cli.ledger.monitoring import REASONS
from boinc_gahp.config.places import user_name
from tests.cli.conftest import COMMAND
from tests.cli.watching import MINE, accept, on_project
from tests.helpers import ran

ROOT = Path(__file__).parent.parent.parent


def test_the_file_is_there_whole_for_everybody_to_read(desk):
    accept(desk.jobs, 1)
    before = os.umask(0o077)
    try:
        desk.status("--textfile", "jobs.prom")
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(before)
    assert desk.metrics.stat().st_mode & 0o777 == 0o644
    whole = desk.metrics.read_text()
    with desk.metrics.open() as reader:
        start = reader.read(100)
        desk.status("--textfile", "jobs.prom")
        # Who reads meanwhile has the whole old one.
        assert start + reader.read() == whole
    assert {path.name for path in desk.home.iterdir()} == {".config", ".local", "jobs.prom"}


def test_the_user_s_name_stands_in_the_file_s(desk):
    desk.status("--textfile", "boinc_gahp_{user}.prom")
    assert (desk.home / f"boinc_gahp_{user_name()}.prom").exists()
    status, out, err = desk.status("--textfile", "-")
    assert (status, err) == (0, "")
    assert f'boinc_gahp_ledger_readable{{user="{user_name()}"}} 1\n' in out


@pytest.mark.parametrize("name", ["nowhere/jobs.prom", "~nobody.of.this.name/jobs.prom"])
def test_a_file_that_cannot_be_written_is_reported(desk, name):
    status, out, err = desk.status("--textfile", name)
    assert (status, out) == (1, "")
    assert "written" in err
    assert name.partition("/")[0] in err
    assert err.count("\n") == 1


def test_a_file_that_node_exporter_would_not_read_is_refused(desk):
    status, _, err = desk.status("--textfile", "jobs.txt")
    assert status == 2
    assert "must end in .prom" in err
    assert not (desk.home / "jobs.txt").exists()


@pytest.mark.processes
def test_the_line_for_cron_writes_the_file(desk, tmp_path):
    [line] = [
        line
        for line in (ROOT / "conf/boinc_gahp.cron").read_text("utf-8").splitlines()
        if "--textfile" in line
    ]
    command = line.split(maxsplit=5)[5]
    command = command.replace("/opt/boinc_gahp/bin/boinc_gahp", COMMAND)
    command = command.replace("/var/lib/boinc_gahp/metrics", str(tmp_path))
    done = ran("/bin/sh", "-c", command)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "boinc_gahp_attention" in (tmp_path / f"{user_name()}.prom").read_text("utf-8")


def test_the_documentation_has_all_metrics_and_reasons(desk):
    on_project(desk.jobs, 1)
    desk.jobs.project_trouble(*MINE, "HTTP 503")
    desk.jobs.polled(*MINE, 1e9)
    desk.status("--textfile", str(desk.metrics))
    page = (ROOT / "docs/htcondor-admins.rst").read_text("utf-8")
    listed = re.findall(r"^   \* - ``(\w+)``$", page, re.MULTILINE)
    written = {
        family.name for family in text_string_to_metric_families(desk.metrics.read_text("utf-8"))
    }
    assert set(listed) == written | REASONS.keys()


def test_a_link_in_the_file_s_place_is_replaced_and_not_followed(desk):
    precious = desk.home / "precious"
    precious.write_text("mine")
    desk.metrics.symlink_to(precious)
    assert desk.status("--textfile", str(desk.metrics))[0] == 0
    assert precious.read_text() == "mine"
    assert not desk.metrics.is_symlink()
