"""An image with this machine's Python for tests: busybox, the interpreter, and its library."""

import re
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

#: Its name, where an engine has it.
PYTHON_IMAGE = "localhost/python-for-tests"

_VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"
#: What no test needs.
_LEFT_OUT = re.compile(
    r"(^|/)(site-packages|test|tests|idlelib|ensurepip|lib2to3|tkinter|turtledemo|__pycache__|"
    r"config-[^/]*|dist-packages|pydoc_data|venv|distutils|sqlite3|unittest)(/|$)"
    r"|lib-dynload/(_test|_xx|xx|_tkinter|_curses|_ssl|_hashlib|_sqlite3|readline|nis|oss|_codecs_"
    r"|_dbm|_gdbm)"
)
_LIBRARY = re.compile(r"(/[^ \n]+) \(0x")


def python_image(engine):
    """Return the name of the image; made when it is asked for first."""
    if f"{PYTHON_IMAGE}:latest" not in engine.images():
        path = engine.directory / "python.tar"
        with tarfile.open(engine.root_file_system()) as base, tarfile.open(path, "w") as tar:
            for member in base:
                tar.addfile(member, base.extractfile(member) if member.isfile() else None)
            for file, name in _files():
                tar.add(file, name, recursive=False)
        engine("import", "--quiet", path, PYTHON_IMAGE)
        path.unlink()
    return PYTHON_IMAGE


def _files():
    """Yield files of this machine, and their places in the image."""
    program = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib"))
    yield program, "usr/local/bin/python3"
    binaries = [program]
    for path in sorted(library.rglob("*")):
        below = path.relative_to(library).as_posix()
        if path.is_file() and _LEFT_OUT.search(below) is None:
            yield path, f"usr/local/lib/{_VERSION}/{below}"
            if path.suffix == ".so":
                binaries.append(path)
    for path in sorted(_libraries(binaries)):
        is_loader = path.name.startswith("ld-linux")
        yield path.resolve(), str(path).lstrip("/") if is_loader else f"lib/{path.name}"


def _libraries(binaries):
    """Return the shared libraries that programs need."""
    done = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False)
    return {Path(found) for found in _LIBRARY.findall(done.stdout)}
