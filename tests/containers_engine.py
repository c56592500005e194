"""A container engine for tests: podman with a store, locks and settings of the tests' own.

The fixture ``engine`` (``tests/conftest.py`` hands it out) also sets the environment, so that
whatever a test starts finds this engine and its images. Each pytest process has its own, in a
directory that is removed at the end with all containers and images: nothing of the machine's own
store is read or changed. A test that uses it needs the marks ``containers`` and ``processes`` or
``long``, and stands in a file ``test_containers*.py``.
"""

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers import ran

INSTALL = "apt-get install --no-install-recommends podman runc busybox-static"

#: An image with a shell, tar and the like: busybox, and no /etc/passwd.
IMAGE = "localhost/bb"

_TIMEOUT = 120
#: For small virtual machines (``containers.rst``, "A container engine for tests").
_SETTINGS = """\
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
netns = "host"
[engine]
{runtime}
events_logger = "none"
lock_type = "file"
tmp_dir = "{directory}/run"
"""
_STORAGE = """\
[storage]
driver = "{driver}"
graphroot = "{directory}/store"
runroot = "{directory}/runroot"
"""


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine: ``program`` is its path, ``directory`` is empty, for files that tests share."""

    program: str
    directory: Path

    def __call__(self, *arguments):
        """Run the engine with arguments; return what it prints. It must succeed."""
        done = ran(self.program, *arguments, stdin=subprocess.DEVNULL, timeout=_TIMEOUT)
        assert done.returncode == 0, f"podman {' '.join(map(str, arguments))}: {done.stderr}"
        return done.stdout

    def containers(self):
        """Return the names of all containers, running or not."""
        return set(self("ps", "--all", "--format", "{{.Names}}").split())

    def images(self):
        """Return the names of all images, with tags."""
        return set(self("images", "--format", "{{.Repository}}:{{.Tag}}").split())

    def archive(self):
        """Return ``IMAGE`` as an oci-archive."""
        path = self.directory / "image.tar"
        if not path.exists():
            self("save", "--quiet", "--format", "oci-archive", "--output", path, IMAGE)
        return path

    def root_file_system(self):
        """Return the contents of ``IMAGE`` as a tar.gz."""
        return self.directory / "rootfs.tar.gz"


def _make_root_file_system(path, busybox):
    listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    with tarfile.open(path, "w:gz") as tar:
        tar.add(busybox, "bin/busybox")
        for name in listed.stdout.split():
            if name != "busybox":
                link = tarfile.TarInfo(f"bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(link)
        for name, mode in (("tmp", 0o1777), ("etc", 0o755), ("proc", 0o755), ("dev", 0o755)):
            directory = tarfile.TarInfo(name)
            directory.type, directory.mode = tarfile.DIRTYPE, mode
            tar.addfile(directory, io.BytesIO())


def _missing(program, required):
    words = f"there is no {program}: {INSTALL}"
    if required:
        pytest.fail(words)
    pytest.skip(words)


def started(directory, *, required):
    """Return an engine whose files are all in a directory, and which has ``IMAGE``.

    The environment names its settings. ``required``: fail without an engine, do not skip.
    """
    podman, busybox = shutil.which("podman"), shutil.which("busybox")
    if podman is None or busybox is None:
        _missing("busybox" if podman else "podman", required)
        raise AssertionError
    runtime = 'runtime = "runc"' if shutil.which("runc") else ""
    settings, storage = directory / "containers.conf", directory / "storage.conf"
    settings.write_text(_SETTINGS.format(directory=directory, runtime=runtime), "utf-8")
    os.environ["CONTAINERS_CONF"] = str(settings)
    os.environ["CONTAINERS_STORAGE_CONF"] = str(storage)
    files = directory / "files"
    files.mkdir()
    engine = Engine(podman, files)
    _make_root_file_system(engine.root_file_system(), busybox)
    # Where these tests run in a container themselves, only vfs may work.
    for driver in ("overlay", "vfs"):
        storage.write_text(_STORAGE.format(directory=directory, driver=driver), "utf-8")
        with suppress(AssertionError):
            engine("import", "--quiet", engine.root_file_system(), IMAGE)
            assert engine("run", "--rm", IMAGE, "sh", "-c", "echo answers") == "answers\n"
            return engine
        for name in ("store", "runroot", "run"):
            shutil.rmtree(directory / name, ignore_errors=True)
    # It says why.
    engine("run", "--rm", IMAGE, "true")
    raise AssertionError("podman does not run a container")


def ended(directory):
    """Remove all containers and images of an engine, and its directory."""
    podman = shutil.which("podman")
    if podman is not None and (directory / "store").exists():
        for arguments in (("rm", "--all", "--force", "--time", "0"), ("rmi", "--all", "--force")):
            ran(podman, *arguments, timeout=_TIMEOUT)
        # Without root the files of containers belong to other users.
        if os.geteuid() != 0:
            ran(podman, "unshare", "rm", "-rf", directory, timeout=_TIMEOUT)
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def engine(request):
    """An engine for all tests of this process; without one they are skipped, or fail in CI."""
    # Sockets are in it, so its name has to be short.
    directory = Path(tempfile.mkdtemp(prefix="engine-"))
    required = request.config.option.markexpr == "containers" or os.environ.get("CI") == "true"
    before = dict(os.environ)
    try:
        yield started(directory, required=required)
    finally:
        ended(directory)
        os.environ.clear()
        os.environ.update(before)
