"""BUDA apps: directories whose files the scheduler adds to the jobs that name them.

A real server's page makes them (``html/user/buda.php``), and its scheduler reads them
(``sched/buda.cpp``; ``containers.rst``, "BUDA apps"). They are in the same place here, with the
same files: ``buda_apps/NAME/desc.json`` and ``buda_apps/NAME/VARIANT/variant.json``.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.files import write_whole
from boinc_gahp.localproject.hosts.engine import BUDA
from boinc_gahp.localproject.store import directory_of
from boinc_gahp.localproject.supplied import input_template, output_template
from boinc_gahp.templates.writing import write_input_template, write_output_template

if TYPE_CHECKING:
    from pathlib import Path

    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.new_app import NewApp

#: What stands before the name of such an app on command lines.
PREFIX = f"{BUDA}:"

_DIRECTORY = "buda_apps"
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")
_NAMED = re.compile(r"<buda_app_name>(.*?)</buda_app_name>", re.DOTALL)
#: What the scheduler tells the client about a variant; its own elements come after a template's.
_USAGE = re.compile(r"<(avg_ncpus|flops)>.*?</\1>\n?", re.DOTALL)
#: BOINC's words for processors, by Python's.
_CPUS = {"x86_64": "intel", "amd64": "intel", "aarch64": "arm", "arm64": "arm"}

_FILE_INFO = """\
<file_info>
    <sticky/>
    <no_delete/>
    <executable/>
    <name>{name}</name>
    <url>{url}download/{directory}/{name}</url>
    <md5_cksum>{md5}</md5_cksum>
    <nbytes>{nbytes}</nbytes>
</file_info>
"""
_FILE_REF = """\
<file_ref>
    <file_name>{name}</file_name>
    <open_name>{open_name}</open_name>
    <copy_file/>
</file_ref>
"""


def add(core: Core, app: NewApp) -> list[Path]:
    """Make an app's directory, with a variant for this machine's processor, and stage its files.

    Returns:
        The files that were written.

    Raises:
        ValueError: there is one of this name, it has no Dockerfile, or a name is wrong; nothing was
            changed.
        OSError: a file cannot be read.
    """
    name = app.name.removeprefix(PREFIX)
    outputs = [name for name, _ in app.outputs]
    if app.dockerfile is None:
        raise ValueError("a BUDA app has a Dockerfile, from which hosts build its image: name it")
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"a BUDA app cannot be named {name!r}: expected letters, digits, '_', '-' and '.', "
            "at most 100 of them"
        )
    directory = core.directory / _DIRECTORY / name
    if directory.exists():
        raise ValueError(f"there is a BUDA app {name!r} already: {directory}")
    staged = {"Dockerfile": app.dockerfile}
    for path in app.files:
        if path.name in staged:
            raise ValueError(f"{path.name!r} is given twice: expected different names")
        staged[path.name] = path
    infos = input_template(*app.inputs)
    templates = {
        # Like BOINC's, it does not say how large a job is.
        "template_in": write_input_template(
            replace(
                infos,
                rsc_fpops_est=None,
                rsc_fpops_bound=None,
                rsc_memory_bound=None,
                rsc_disk_bound=None,
                buda_app_name=name,
            )
        ),
        "template_out": write_output_template(output_template(*outputs, max_nbytes=app.max_nbytes)),
    }
    cpu = _cpu_type()
    variant = f"{cpu}_cpu"
    made = [_staged(core, f"{BUDA}_{name}_{variant}", *each) for each in staged.items()]
    description = {
        "name": name,
        "long_name": name,
        "input_file_names": list(app.inputs),
        "output_file_names": outputs,
        "max_nbytes_mb": app.max_nbytes / 1e6,
    }
    of_variant = {
        "dockerfile": app.dockerfile.name,
        "app_files": [path.name for path in app.files],
        "cpu_type": cpu,
        "plan_class": "",
        "file_infos": "".join(info for info, _ in made),
        "file_refs": "".join(ref for _, ref in made),
    }
    (directory / variant).mkdir(parents=True)
    for template, text in templates.items():
        write_whole(directory / template, text)
    write_whole(directory / variant / "variant.json", json.dumps(of_variant, indent=4))
    # Last: without it this is no app.
    write_whole(directory / "desc.json", json.dumps(description, indent=4))
    return [directory / "desc.json", directory / variant / "variant.json"]


def elements_that_can_run(directory: Path) -> list[str]:
    """Return the elements of workunits whose apps have a variant for this machine."""
    paths = sorted((directory / _DIRECTORY).glob("*/desc.json"))
    names = (str(json.loads(path.read_text("utf-8"))["name"]) for path in paths)
    return [
        f"<buda_app_name>{name}</buda_app_name>"
        for name in names
        if _variant(directory, name) is not None
    ]


def with_variant(directory: Path, document: str, flops: float) -> str:
    """Return a workunit's document with the files of its app; any other document unchanged.

    Args:
        directory: the project's.
        document: ``workunit.xml_doc``.
        flops: the host's speed in operations per second, at which it is expected to compute.
    """
    named = _NAMED.search(document)
    variant = None if named is None else _variant(directory, named[1])
    infos, begin, rest = document.partition("<workunit>")
    body, end, after = rest.rpartition("</workunit>")
    if variant is None or not (begin and end):
        return document
    usage = f"   <avg_ncpus>1.000000</avg_ncpus>\n   <flops>{flops:f}</flops>\n"
    body = _USAGE.sub("", body)
    return f"{infos}{variant['file_infos']}{begin}{body}{usage}{variant['file_refs']}{end}{after}"


def _staged(core: Core, prefix: str, open_name: str, path: Path) -> tuple[str, str]:
    """Stage a file of an app; return its file_info and its file_ref."""
    contents = path.read_bytes()
    md5 = hashlib.md5(contents, usedforsecurity=False).hexdigest()
    name = f"{prefix}_{md5}"
    core.download.add_bytes(name, contents)
    values = {
        "name": name,
        "open_name": open_name,
        "url": core.url,
        "directory": directory_of(name),
        "md5": md5,
        "nbytes": len(contents),
    }
    return _FILE_INFO.format(**values), _FILE_REF.format(**values)


def _variant(directory: Path, name: str) -> dict[str, str] | None:
    """Return the variant for this machine; None: the app has none, or there is no such app."""
    if not _NAME.fullmatch(name):
        return None
    for path in sorted((directory / _DIRECTORY / name).glob("*/variant.json")):
        variant: dict[str, str] = json.loads(path.read_text("utf-8"))
        if variant["cpu_type"] == _cpu_type():
            return variant
    return None


def _cpu_type() -> str:
    return _CPUS.get(platform.machine().lower(), "unknown")
