"""The script that runs programs, with real shells."""

import os
import shutil
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from boinc_gahp.containers.ending import Ending, read_ending
from boinc_gahp.containers.script import LARGEST, Layout, Program, by_script, write_script

pytestmark = pytest.mark.processes

SHELLS = [
    each for each in ("/bin/sh", "bash --posix", "busybox sh") if shutil.which(each.split()[0])
]

#: What can be a word: all but NUL; surrogates stand for bytes that are not UTF-8.
CHARACTERS = (
    st.characters(exclude_characters="\0", exclude_categories=["Cs"])
    | st.sampled_from(" '\"\\$`\n\r\t*?[]~#!&|;<>(){}=%-")
    | st.integers(0xDC80, 0xDCFF).map(chr)
)
WORDS = st.lists(st.text(CHARACTERS), max_size=5)
VARIABLE = st.text(CHARACTERS.filter(lambda c: c != "="), min_size=1).filter(
    lambda name: not name.startswith("-")
)


class Slot:
    """A slot, as a host gives it to a container: the directory stands for ``/app``."""

    def __init__(self, path):
        self.path = path
        self.work = path / "work"
        self.work.mkdir(parents=True)

    def run(self, layout, programs, number=1, **how):
        """Run a job as :meth:`ending`; return the exit status, or minus the signal."""
        ending = self.ending(layout, programs, number, **how)
        assert ending.problem is None
        return ending.exit_status

    def do(self, text, *, shell="/bin/sh", **layout):
        """Run a job whose program comes with it, as :meth:`run`."""
        self.program(text)
        return self.run(Layout("./program", is_input=True, **layout), [Program()], shell=shell)

    def ending(self, layout, programs, number=1, *, shell="/bin/sh", path=os.environ["PATH"]):
        """Run a job; return what is told about its end."""
        text = write_script(layout, programs).replace(b"/app", os.fsencode(self.path))
        (self.path / "run.sh").write_bytes(text)
        done = subprocess.run(
            [*shell.split(), "./run.sh"],
            cwd=self.path,
            env={"PATH": path, "ARGS": f" {number}"},
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0
        return read_ending((self.path / "_exit").read_bytes())

    def problem(self, *job, **how):
        """Run a job that has a problem; return it."""
        return self.ending(*job, **how).problem

    def program(self, text, name="program"):
        (self.work / name).write_text(f"#!/bin/sh\n{text}\n")

    @property
    def stdout(self):
        return (self.path / "_stdout").read_bytes()

    @property
    def packed(self):
        with tarfile.open(self.path / "_outputs.tar") as archive:
            found = {}
            for member in archive:
                contents = archive.extractfile(member)
                if contents is not None:
                    found[os.path.normpath(member.name)] = contents.read()
            return found


@pytest.fixture(scope="module", params=SHELLS, ids=lambda shell: shell.split()[-1])
def shell(request):
    return request.param


@pytest.fixture
def slot(tmp_path):
    return Slot(tmp_path / "slot")


@pytest.fixture(scope="module")
def shared_slot(tmp_path_factory):
    return Slot(tmp_path_factory.mktemp("slot") / "app")


@settings(max_examples=60, deadline=None)
@given(jobs=st.lists(WORDS, min_size=1, max_size=3))
def test_every_word_arrives_as_it_is(shared_slot, shell, jobs):
    programs = [Program(("%s\\0", "begin", *words)) for words in jobs]
    for number, words in enumerate(jobs, 1):
        shared_slot.run(Layout("printf"), programs, number, shell=shell)
        got = shared_slot.stdout.split(b"\0")[1:-1]
        assert got == [os.fsencode(word) for word in words]


@settings(max_examples=60, deadline=None)
@given(
    variables=st.lists(
        st.dictionaries(VARIABLE, st.text(CHARACTERS), max_size=3), min_size=1, max_size=2
    )
)
def test_every_variable_arrives_as_it_is(shared_slot, shell, variables):
    programs = [Program(("-0",), tuple(each.items())) for each in variables]
    for number, each in enumerate(variables, 1):
        if "PATH" in each:
            continue
        shared_slot.run(Layout("/usr/bin/env"), programs, number, shell=shell)
        got = dict(pair.split(b"=", 1) for pair in shared_slot.stdout.split(b"\0")[:-1])
        for name, value in each.items():
            assert got[os.fsencode(name)] == os.fsencode(value)
        assert b"ARGS" not in got or "ARGS" in each


@pytest.mark.parametrize(
    ("ends", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", -9), ("kill -SEGV $$", -11)]
)
def test_the_programs_end_is_told(slot, shell, ends, code):
    assert slot.do(ends, shell=shell) == code


def test_no_builtin_of_the_shell_is_taken_for_a_program(slot, shell):
    assert slot.run(Layout("exit"), [Program(("0",))], shell=shell) == 127
    assert slot.run(Layout("tell"), [Program(("0",))], shell=shell) == 127


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        (Layout("no-such-program"), "the image has no program 'no-such-program'"),
        (Layout("/opt/none/fit"), "the image has no program '/opt/none/fit'"),
        (Layout("./text"), "'./text' cannot be executed"),
    ],
    ids=["name", "path", "not executable"],
)
def test_a_program_that_cannot_be_run_is_a_problem(slot, layout, says):
    (slot.work / "text").write_text("no program\n")
    assert says in slot.problem(layout, [Program()])


@pytest.mark.parametrize(
    ("line", "lacks"),
    [
        ("#!/opt/none/python3", "'/opt/none/python3'"),
        ("#! /opt/none/python3 -u", "'/opt/none/python3'"),
        ("#!/usr/bin/env no-such-python", "'no-such-python'"),
        ("#!/usr/bin/env -S no-such-python -u", "'no-such-python'"),
        ("#!/opt/none/env python3", "'/opt/none/env'"),
        ("#!/usr/bin/env sh\r", r"'sh\r'"),
        ("#!/opt/*", "'/opt/*'"),
    ],
)
def test_a_script_whose_interpreter_the_image_lacks_is_a_problem(slot, shell, line, lacks):
    (slot.work / "program").write_bytes(f"{line}\n".encode())
    problem = slot.problem(Layout("./program", is_input=True), [Program()], shell=shell)
    assert problem == f"the image has no {lacks}, which the first line of the program names"


def test_a_program_whose_libraries_the_image_lacks_is_a_problem(slot, shell):
    # The name of the loader, which an ELF file has near its beginning.
    binary = Path(sys.executable).resolve().read_bytes()
    assert binary.count(b"/ld-linux") >= 1
    (slot.work / "program").write_bytes(binary.replace(b"/ld-linux", b"/ld-other"))
    problem = slot.problem(Layout("./program", is_input=True), [Program()], shell=shell)
    assert "the image cannot run './program'" in problem


@pytest.mark.parametrize("environments", [((),), ((("A", "1"),),), ((("A", "1"),), (("A", "2"),))])
def test_a_program_with_an_equals_sign_in_its_name_is_no_variable(slot, shell, environments):
    slot.program('echo "$A $1 $2"', "lr=0.1 x'.sh")
    programs = [Program(("a b", "c"), each) for each in environments]
    layout = Layout("./lr=0.1 x'.sh", is_input=True)
    for number, each in enumerate(environments, 1):
        assert slot.run(layout, programs, number, shell=shell) == 0
        assert slot.stdout.decode() == f"{dict(each).get('A', '')} a b c\n"


@pytest.mark.parametrize(("command", "status"), [("no-such-command", 127), ("exit 126", 126)])
def test_the_images_shell_that_ends_with_126_or_127_has_run(slot, shell, command, status):
    layout = Layout(shutil.which("sh") or "")
    assert slot.run(layout, [Program(("-c", command))], shell=shell) == status


def test_stdin_stdout_and_stderr_are_files(slot):
    slot.program("cat; echo wrong >&2")
    (slot.work / "in").write_text("hello\n")
    slot.run(Layout("./program", is_input=True), [Program(stdin="in")])
    assert slot.stdout == b"hello\n"
    assert (slot.path / "_stderr").read_bytes() == b"wrong\n"
    slot.run(Layout("./program", is_input=True, merged=True), [Program(stdin="in")])
    assert slot.stdout == b"hello\nwrong\n"
    (slot.path / "_stdout").unlink()
    slot.run(Layout("./program", is_input=True, stdout=False, stderr=False), [Program()])
    assert not (slot.path / "_stdout").exists()


def test_a_number_that_the_script_does_not_have_is_a_problem(slot):
    assert slot.problem(Layout("true"), [Program()], 0) == "the script has no job number '0'"


def test_directories_are_unpacked_once_and_a_restart_keeps_what_the_program_made(slot, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "a").write_text("as sent")
    with tarfile.open(slot.path / "_in0.tar", "w") as archive:
        archive.add(tmp_path / "model", "model")
    slot.program("cat model/a; echo checkpoint >model/a")
    layout = Layout("./program", is_input=True, archives=("_in0.tar",), outputs=())
    slot.run(layout, [Program()])
    assert slot.stdout == b"as sent"
    slot.run(layout, [Program()])
    assert slot.stdout == b"checkpoint\n"


def test_an_archive_that_cannot_be_unpacked_is_a_problem(slot):
    (slot.path / "_in0.tar").write_bytes(b"no archive")
    assert (
        slot.problem(Layout("true", archives=("_in0.tar",)), [Program()])
        == "tar in the image cannot unpack '_in0.tar'"
    )


def test_new_and_changed_files_are_packed_and_inputs_and_directories_are_not(slot, shell):
    for name in ("same", "changed"):
        (slot.work / name).write_text("as sent")
    slot.do(
        "echo now >changed; echo 1 >new; echo 2 >.hidden; echo 3 >'a b\nc'; mkdir d; echo 4 >d/e\n"
        "echo 5 >-n; ln -s new link; cp -p same copied; echo '# me' >>program",
        shell=shell,
        inputs=("program", "same", "changed"),
    )
    assert slot.packed == {
        "changed": b"now\n",
        "new": b"1\n",
        ".hidden": b"2\n",
        "a b\nc": b"3\n",
        "-n": b"5\n",
        "link": b"1\n",
        "copied": b"as sent",
    }
    assert not (slot.path / "_new").exists()


def test_an_input_may_have_a_name_that_means_something_to_a_shell(slot, shell):
    names = ("esac", "in", "*", "?", "[a]", "a|b", "~", "#", "-n", "!", "a)b", "$HOME", "it's")
    for name in names:
        (slot.work / name).write_text("as sent")
    slot.do("echo 1 >e; echo now >esac", shell=shell, inputs=("program", *names))
    assert slot.packed == {"e": b"1\n", "esac": b"now\n"}


def test_named_directories_are_packed_with_all_that_is_in_them(slot, shell):
    slot.do(
        'mkdir -p plots/deep; echo 1 >plots/deep/a; echo 2 >result; echo 3 >"it\'s"',
        shell=shell,
        outputs=("result", "plots", "it's", "missing"),
        packed=frozenset(["it's"]),
    )
    assert slot.packed == {"plots/deep/a": b"1\n", "it's": b"3\n"}


#: What programs may leave at the name of an output, and whether it comes home as a file.
LEFT = {
    "a directory": ("mkdir o; echo 1 >o/x", False),
    "a directory without rights": ("mkdir o; echo 1 >o/x; chmod 0 o", False),
    "a link to a file": ("echo 1 >x; ln -s x o", True),
    "a link by its whole path": ("echo 1 >x; ln -s $PWD/x o", True),
    "a link to another output": ("echo 1 >d/p; ln -s d/p o", True),
    "a link to a directory": ("mkdir x; echo 1 >x/x; ln -s x o", False),
    "a link to nothing": ("ln -s nothing o", False),
    "a link to itself": ("ln -s o o", False),
    "a pipe": ("mkfifo o", False),
    "a socket": (
        f"exec {sys.executable} -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"o\")'",
        False,
    ),
    "a file that nobody may read": ("echo 1 >o; chmod 0 o", True),
}


@pytest.mark.parametrize(("text", "comes"), LEFT.values(), ids=LEFT)
def test_only_regular_files_stand_at_the_names_of_outputs(slot, shell, text, comes):
    assert slot.do(f"mkdir d; {text}", shell=shell, outputs=("d/p", "o")) == 0
    place = slot.work / "o"
    assert os.path.lexists(place) == comes
    assert not (slot.path / "_copy").exists()
    if comes:
        assert place.read_bytes() == b"1\n"
        assert stat.S_IMODE(place.lstat().st_mode) & 0o444 == 0o444
    if text.startswith("mkdir o"):
        assert slot.packed == {"o/x": b"1\n"}


def test_no_link_leads_from_the_name_of_an_output_out_of_the_slot(slot, tmp_path, shell):
    """On the host, what the container has there is a file of the host."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passwd").write_text("as it was")
    text = f"ln -s '{tmp_path}/etc' e; mkdir -p a/b; echo 1 >a/b/c; ln -s a/b f; ln -s d g"
    assert slot.do(text, shell=shell, outputs=("e/passwd", "f/c", "e/none", "g/x")) == 0
    assert not (slot.work / "e").is_symlink()
    assert (slot.work / "e/passwd").read_text() == "as it was"
    assert (slot.work / "f/c").read_bytes() == b"1\n"
    assert not os.path.lexists(slot.work / "g")
    assert [each.name for each in (tmp_path / "etc").iterdir()] == ["passwd"]


@pytest.mark.parametrize("name", ["_exit", "_stdout", "_stderr", "_outputs.tar"])
@pytest.mark.parametrize("left", ["mkdir {0}; : >{0}/x", "mkfifo {0}", "ln -s /dev/zero {0}"])
def test_only_regular_files_stand_at_the_names_of_our_own_outputs(slot, shell, name, left):
    text = f"cd ..; rm -f {name}; {left.format(name)}; exit 3"
    assert slot.do(text, shell=shell, outputs=()) == 3
    place = slot.path / name
    assert place.is_file() if name == "_exit" else not os.path.lexists(place)


@pytest.fixture
def without_tar(tmp_path):
    """A PATH with what a small image has, but not tar."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in ("sh", "mkdir", "rm", "chmod", "ln", "cp", "env", "true"):
        (directory / name).symlink_to(shutil.which(name) or "")
    return str(directory)


@pytest.mark.parametrize(
    "layout",
    [
        Layout("./program", is_input=True),
        Layout("./program", is_input=True, outputs=("d",)),
        Layout("./program", is_input=True, archives=("_in0.tar",)),
    ],
    ids=["new files", "directory out", "directory in"],
)
def test_an_image_without_tar_is_told_where_tar_is_needed(slot, without_tar, layout):
    slot.program("mkdir d; : >new")
    problem = slot.problem(layout, [Program()], path=without_tar)
    assert problem.startswith("the image has no tar")


def test_an_image_without_tar_is_enough_for_named_files(slot, without_tar):
    slot.program(": >out")
    layout = Layout("./program", is_input=True, outputs=("out",))
    assert slot.run(layout, [Program()], path=without_tar) == 0


def test_10000_jobs_share_scripts_of_a_bounded_size(slot):
    programs = [Program(("--seed", str(seed))) for seed in range(10_000)]
    parts = list(by_script(programs, lambda each: each))
    assert [each for part in parts for each in part] == programs
    assert len(parts) < 10
    for part in parts:
        assert len(write_script(Layout("echo"), part)) < LARGEST + 10_000
    slot.run(Layout("echo"), parts[-1], len(parts[-1]))
    assert slot.stdout == b"--seed 9999\n"


def test_a_job_with_100_kb_of_arguments_has_a_script_of_its_own(slot):
    large = Program(("x" * 100_000,))
    parts = list(by_script([Program(), large, Program()], lambda each: each))
    assert [len(part) for part in parts] == [1, 1, 1]
    slot.run(Layout("echo"), parts[1])
    assert slot.stdout == b"x" * 100_000 + b"\n"


def test_a_script_tells_the_names_of_outputs_and_needs_none_of_inputs(slot, shell):
    (slot.work / "in").write_text("in")
    (slot.work / ".in").write_text("in")
    (slot.work / "changed").write_text("in")
    slot.program("echo 1 >result; echo 2 >>changed; exit 3")
    named = Layout("./program", is_input=True, tells=True, outputs=("result", "sub/no ne"))
    assert slot.ending(named, [Program()], shell=shell) == Ending(
        3, outputs=("result", "sub/no ne")
    )
    (slot.path / "_started").unlink()
    (slot.work / "result").unlink()
    unnamed = Layout("./program", is_input=True, tells=True)
    assert slot.ending(unnamed, [Program()], shell=shell) == Ending(3, outputs=())
    assert set(slot.packed) == {"result", "changed"}
