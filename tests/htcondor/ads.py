"""Job ads as HTCondor writes them, and what is read of them."""

import os

import pytest

from boinc_gahp.config.settings import HTCondor, ProjectSettings
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.htcondor._job_ad import read_ad
from boinc_gahp.htcondor.attributes import BOINC, AdRefused
from boinc_gahp.submit.types import LocalFile
from tests.daemon.gridmanager import job_ad

SETTINGS = HTCondor()
MD5 = "D41D8CD98F00B204E9800998ECF8427E"
#: What an ad of a job with an app may lack.
OPTIONAL = (
    *("Arguments", "BatchExtraSubmitArgs", "Environment", "Err", "In", "Out", "Queue"),
    *("RequestMemory", "StageCmd", "TransferInput", "TransferOutput", "TransferOutputRemaps"),
    *(f"Boinc{name}" for name in BOINC if name != "App"),
)
#: A project with an app for containers.
PROJECT = ProjectSettings(ProjectUrl("http://127.0.0.1/test/"), container_app="docker")


def ad(iwd, **values):
    return job_ad(str(iwd), **({"Cmd": "/home/alice/run.sh", "BoincApp": "uppercase"} | values))


def job(iwd, project=None, settings=SETTINGS, **values):
    """Return the job of an ad; ``project`` is that of the settings."""
    return read_ad(ad(iwd, **values), settings, lambda _: project)


def container_job(iwd, project=PROJECT, settings=SETTINGS, **values):
    """Return a job that brings its own program, and names an image."""
    (iwd / "fit.py").write_text("#!/usr/bin/python3\n")
    usual = {"BoincApp": None, "Cmd": f"{iwd}/fit.py", "ContainerImage": "python:3"}
    return job(iwd, project, settings, **(usual | values))


def inside(iwd, **values):
    """Return what such a job runs in a container."""
    return container_job(iwd, **values).container_job


def refused(iwd, *, read=job, **values):
    """Return why an ad is refused: one line, which can be written."""
    with pytest.raises(AdRefused) as raised:
        read(iwd, **values)
    text = str(raised.value)
    assert "\n" not in text
    text.encode()
    return text


def local(iwd, *names):
    """Return input files of these names, as a job has them."""
    files = []
    for name in names:
        path = iwd / name
        path.write_bytes(os.fsencode(name))
        status = path.stat()
        files.append((name, LocalFile(path, (status.st_size, status.st_mtime_ns))))
    return tuple(files)
