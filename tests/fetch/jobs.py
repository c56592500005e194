"""Finished jobs of a project that answers from a script, and what a fetch of them leaves."""

import io
import itertools
import os
import tarfile
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import escape

from boinc_gahp.config.settings import JobSettings, Settings
from boinc_gahp.errors import Stopped
from boinc_gahp.fetch.container_directory import fetch_container
from boinc_gahp.fetch.destinations import CancelScope
from boinc_gahp.fetch.types import AdRequest
from boinc_gahp.templates.reading import read_output_template
from tests.submit.scripted import Script, batch, job

JOB = "b#1.0"
INSTANCE = "b#1.0_0"

STDERR = (
    "<core_client_version>7.20.5</core_client_version>\n<![CDATA[\n"
    "<stderr_txt>\nsaid\n\n</stderr_txt>\n]]>"
)
FATAL = (
    "<completed_job><error_mask>2</error_mask>\n"
    "<b>Fatal error</b>: Uncaught mysqli_sql_exception in <b>x</b><br />"
)


def completed(status=0, *, result="canonical_resultid"):
    return (
        f"<completed_job><error_mask>0</error_mask><{result}>119</{result}>"
        f"<exit_status>{status}</exit_status><elapsed_time>2.5</elapsed_time>"
        f"<cpu_time>1.5</cpu_time><stderr_out><![CDATA[{escape(STDERR)}]]></stderr_out>"
        "</completed_job>"
    )


def templates(*outputs, optional=()):
    infos = "".join(
        f"<file_info><name><OUTFILE_{number}/></name><generated_locally/>"
        "<upload_when_present/><max_nbytes>5000000</max_nbytes><url><UPLOAD_URL/></url></file_info>"
        for number in range(len(outputs))
    )
    refs = "".join(
        f"<file_ref><file_name><OUTFILE_{number}/></file_name><open_name>{name}</open_name>"
        f"{'<optional/>' if name in optional else ''}</file_ref>"
        for number, name in enumerate(outputs)
    )
    return (
        "<templates>\n<input_template>\n<file_info>\n</file_info>\n<workunit>\n<file_ref>\n"
        "<open_name>in</open_name>\n</file_ref>\n</workunit>\n</input_template>\n"
        f"<output_template>\n{infos}\n<result>\n{refs}\n</result>\n</output_template>\n</templates>"
    )


def output_template(*outputs, optional=()):
    """Return the output template as a job of its own has it."""
    own = templates(*outputs, optional=optional).partition("</input_template>")[2]
    return read_output_template(own.removesuffix("</templates>"))


def instance(*sizes, state="Completed and validated"):
    files = "".join(f"<outfile><size>{size}</size></outfile>" for size in sizes)
    return f"<instance><name>{INSTANCE}</name><id>119</id><state>{state}</state>{files}</instance>"


def uploaded(*numbers):
    return {
        (INSTANCE, place): (f"{INSTANCE}_r799338679_{number}", f"file {number}".encode())
        for place, number in enumerate(numbers)
    }


def done(*outputs, optional=(), present=(0,)):
    return Script(
        {
            "query_batch": batch(7, "b", 2, job(1, JOB, 119)),
            "query_job": instance(*range(len(present))),
            "query_completed_job": completed(),
            "get_templates": templates(*outputs, optional=optional),
        },
        uploaded(*present),
    )


def ended(*statuses, why="too_many_error_results"):
    """Return a failed job's details, as get_job_details has them."""
    exits = "".join(f"<exit_status>{status}</exit_status>" for status in statuses)
    return f"<error>{why}</error>{exits}<status>error</status>"


def failed(details, told=FATAL):
    def query_batch(asked):
        return batch(7, "b", 2, job(1, JOB, 0, details if asked["get_job_details"] else ""))

    return Script(
        {
            "query_batch": query_batch,
            "query_job": instance(state="Error while computing"),
            "query_completed_job": told,
        }
    )


GONE = f"ERROR: no such file /srv/boinc/upload/324/{INSTANCE}_r799338679_0".encode()
FILE = {
    "Content-Type": "application/octet-stream",
    "Content-Disposition": f"attachment; filename={JOB}__file_out0",
    "Content-Length": "3",
}


def found(home):
    """Return all that is below a directory, with the files' contents."""
    there = {}
    for path in sorted(home.rglob("*")):
        with suppress(FileNotFoundError):  # another thread's temporary file
            there[str(path.relative_to(home))] = path.read_bytes() if path.is_file() else None
    return there


class _Closing(CancelScope):
    """Is closed by another thread at the n-th time that it is asked."""

    def __init__(self, at, home):
        super().__init__()
        self.left = at
        self.seen = {}
        self._home = home
        self._closer = threading.Thread(target=self.close)

    def check(self):
        self.left -= 1
        if self.left == 0:
            self._closed = True  # its closer only waits until everybody is out
            self._closer.start()
            self.seen = found(self._home)
        super().check()

    def join(self):
        self._closer.join(60)
        assert not self._closer.is_alive()


def cancel_at_every_step(fetch, room, whole, old):
    """Cancel a fetch at each of its steps: nothing appears afterwards, and nothing incomplete.

    Args:
        fetch: fetches into a directory, with a scope.
        room: where a directory is made for each step.
        whole: what a fetch brings.
        old: the files that are in the directory before.
    """
    for step in itertools.count(1):
        home = room / str(step)
        home.mkdir()
        for name, data in old.items():
            (home / name).write_bytes(data)
        scope = _Closing(step, home)
        try:
            fetch(home, scope)
        except Stopped:
            scope.join()
        else:
            break
        after = found(home)
        shown = {name: data for name, data in scope.seen.items() if ".boinc_gahp" not in name}
        assert after == shown, f"step {step}"
        assert after.items() <= whole.items() | old.items(), f"step {step}"
        assert old.keys() <= after.keys(), f"step {step}"
    assert step > 20
    assert found(home) == {**old, **whole}


def note_syncs(root, monkeypatch):
    """Return a list that gets each path below ``root`` that is synced to the disk."""
    synced = []
    fsync = os.fsync

    def noting(descriptor):
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        synced.append(path.removeprefix(str(root)))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    return synced


EXIT, OUT, ERR, PACKED = "_exit", "_stdout", "_stderr", "_outputs.tar"


def tar(members, modes=None):
    """Return a tar archive; a member without contents is a directory."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.mode = (modes or {}).get(name, 0o644)
            info.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
            info.size = len(data or b"")
            archive.addfile(info, io.BytesIO(data or b""))
    return buffer.getvalue()


class Job:
    """A finished container job on a project that answers from a script.

    Args:
        files: what its instance uploaded, by open names.
        outputs: the names that the job asks for.
        remaps: where they go.
        out: where stdout goes.
        err: where stderr goes.
    """

    def __init__(self, files, outputs=(), remaps=(), *, out="job.out", err="job.err"):
        named = [f"work/{name}" for name in outputs or ()]
        names = [EXIT, OUT, ERR, *dict.fromkeys(named), PACKED]
        own = output_template(*names, optional=names[1:])
        outputs = None if outputs is None else tuple(outputs)
        self.wanted = AdRequest(JOB, "/", outputs, remaps, out, err, 7, own)
        present = [name for name in names if name in files]
        assert len(present) == len(files), "a file is no output"
        self.script = Script(
            {
                "query_batch": batch(7, "b", 2, job(1, JOB, 119)),
                "query_job": instance(*(len(files[name]) for name in present)),
                "query_completed_job": completed(),
            },
            {
                (INSTANCE, place): (f"{INSTANCE}_r1_{names.index(name)}", files[name])
                for place, name in enumerate(present)
            },
        )

    def request(self, home):
        return replace(self.wanted, directory=str(home))

    def fetch(self, home, *, scope=None, settings=None, cache=None):
        context = self.script.context(
            cache_dir=cache, settings=Settings(jobs=settings or JobSettings())
        )
        try:
            return fetch_container(context, self.request(home), *([scope] if scope else []))
        finally:
            context.placed.close()


ALL = {EXIT: b"0\n", OUT: b"said\n", ERR: b"complained\n"}
