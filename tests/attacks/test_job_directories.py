"""What a project, a volunteer or a neighbour might have written through a job's directory."""

import errno
import fcntl
import gzip
import io
import os
import struct
import zipfile

import pytest

from boinc_gahp.api.outputs import folders
from boinc_gahp.api.outputs.folders import FinishedJob
from boinc_gahp.config.settings import JobSettings
from boinc_gahp.errors import OutputError, StagingError
from boinc_gahp.fetch._archive import ZipArchive
from boinc_gahp.fetch.destinations import Directories
from boinc_gahp.fetch.leftovers import sweep
from boinc_gahp.fetch.temporary import Temporaries
from boinc_gahp.submit.digests import stat_input
from tests.attacks.hostile_outputs import HostileOutputs
from tests.attacks.users import BOB as NEIGHBOUR, needs_root
from tests.fetch.archives import check_refused
from tests.fetch.farm import contents as files
from tests.helpers import most_memory


@pytest.fixture
def home(tmp_path):
    """The job's directory."""
    home = tmp_path / "job"
    home.mkdir()
    return home


@pytest.fixture
def elsewhere(tmp_path):
    """A directory of the victim's that no job is to write to."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    return elsewhere


def foreseen(destination):
    """Return a name that a temporary has that is made for a destination."""
    item = Temporaries().file(destination)
    item.discard()
    return item.path


def zipped(*members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for member in members:
            archive.writestr(member, b"theirs")
    return buffer.getvalue()


# -- a neighbour, in a directory that others may write


def test_empty_another_file_by_a_hard_link_with_the_name_of_the_temporary_file(home, elsewhere):
    precious = elsewhere / "precious"
    precious.write_text("precious")
    os.link(precious, foreseen(home / "out"))
    HostileOutputs({"out": b"result"}).fetch(home)
    assert precious.read_text() == "precious"
    assert (home / "out").read_bytes() == b"result"


def test_have_an_output_written_to_a_file_that_stays_the_neighbours(home):
    if os.geteuid() == 0:
        planted = foreseen(home / "out")
        planted.touch()
        os.chown(planted, NEIGHBOUR, -1)
    else:
        os.mkfifo(foreseen(home / "out"))  # another's cannot be made; this is none of ours either
    HostileOutputs({"out": b"result"}).fetch(home)
    assert (home / "out").read_bytes() == b"result"
    assert (home / "out").stat().st_uid == os.geteuid()


@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_have_a_directory_of_the_victims_emptied_by_giving_it_the_name_of_a_temporary_one(
    home, mode
):
    file = foreseen(home / "out")
    file.touch()
    results = file.with_name(f"{file.name}.0123456789abcdef")
    results.mkdir(mode)
    if mode == 0o755:
        (results / ".boinc_gahp.room").touch()
    (results / "precious").write_text("precious")
    sweep(home)
    assert not file.exists()
    assert (results / "precious").read_text() == "precious"


@needs_root
@pytest.mark.parametrize("mode", [0o1777, 0o777])
def test_lead_outputs_away_by_a_link_where_everyone_can_write(mode, tmp_path, elsewhere):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    (shared / "job").symlink_to(elsewhere)
    os.lchown(shared / "job", NEIGHBOUR, -1)
    told = rf"shared/job is a symbolic link that user {NEIGHBOUR} made in a directory that everyone"
    project = HostileOutputs({"out": b"theirs"})
    project.check_refused(told, shared / "job")
    project.check_refused(told, tmp_path, ("out", "shared/job/out"))
    assert files(elsewhere) == {}


@needs_root
@pytest.mark.parametrize("mode", [0o1777, 0o777])
@pytest.mark.parametrize("to", ["the file", "its directory"])
def test_have_a_file_of_the_victims_sent_by_a_link_where_everyone_can_write(
    mode, to, tmp_path, elsewhere
):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    (elsewhere / "data").write_text("private")
    link = shared / "data"
    link.symlink_to(elsewhere / "data" if to == "the file" else elsewhere)
    os.lchown(link, NEIGHBOUR, -1)
    named = link if to == "the file" else link / "data"
    (tmp_path / "mine").symlink_to(named)
    for path in (named, tmp_path / "mine"):
        with pytest.raises(StagingError, match=f"a symbolic link that user {NEIGHBOUR} made in"):
            stat_input(str(path))
    os.lchown(link, os.geteuid(), -1)
    assert stat_input(str(named)).st_size == len("private")


def test_keep_the_victims_own_links_and_colleagues_links_from_being_followed(tmp_path, elsewhere):
    sticky, group = tmp_path / "sticky", tmp_path / "group"
    for directory, mode in ((sticky, 0o1777), (group, 0o2775)):
        directory.mkdir()
        directory.chmod(mode)
        (directory / "job").symlink_to(elsewhere)
    if os.geteuid() == 0:
        os.lchown(group / "job", NEIGHBOUR, -1)
    project = HostileOutputs({"out": b"result"})
    project.fetch(sticky / "job")
    assert files(elsewhere) == {"out": b"result"}
    project.fetch(group / "job", ("out", "out2"))
    assert files(elsewhere) == {"out": b"result", "out2": b"result"}


# -- a project or a volunteer, by names


CHOSEN = "link' is a symbolic link, and the project chose"


@pytest.mark.parametrize(
    "outputs",
    [{"link/canary": b"theirs", "other/canary": b"theirs"}, {"all.zip": zipped("link/canary")}],
    ids=["names with directories", "an archive's names"],
)
def test_write_through_a_link_by_names(outputs, home, elsewhere):
    (home / "link").symlink_to(elsewhere)
    (home / "other").mkdir()
    HostileOutputs(outputs).check_refused(CHOSEN, home)
    assert files(elsewhere) == {}


KEYS = ".ssh/authorized_keys"
DOT = "begins with a dot"
OBEYED = {
    "a plain output": ({".bashrc": b"theirs"}, DOT),
    "with its directory": ({f"a/{KEYS}": b"theirs", "b/authorized_keys": b"theirs"}, DOT),
    "an archive": ({"all.zip": zipped("out", KEYS)}, DOT),
    "an empty directory": ({"all.zip": zipped(".git/")}, DOT),
    "one of our own": ({".boinc_gahp.json": b"{}"}, "boinc_gahp's own files"),
    "too deep": ({"x/" * 200 + "y": b"", "y": b""}, "it is too long"),
    "too long": ({"x" * 256: b""}, "it is too long"),
}


@pytest.mark.parametrize(("outputs", "reason"), OBEYED.values(), ids=OBEYED)
def test_replace_a_file_that_programs_obey(outputs, reason, home):
    victim = {".bashrc": b"mine", ".ssh/authorized_keys": b"mine"}
    for name, contents in victim.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_bytes(contents)
    HostileOutputs({**outputs}).check_refused(reason, home)
    assert files(home) == victim


def test_what_the_job_names_may_begin_with_a_dot(home):
    HostileOutputs({".config": b"asked for"}).fetch(home, (".config", ".config"))
    assert files(home) == {".config": b"asked for"}
    HostileOutputs({"all.zip": zipped(".a/b", "c")}).fetch(home, (".a/b", ".a/b"), some=True)
    assert files(home) == {".config": b"asked for", ".a/b": b"theirs"}


def test_hide_a_file_in_a_persons_folder(home):
    outputs = {".bashrc": b"1", ".boinc_gahp.json": b"2", "a/.x/out": b"3", "b/out": b"4"}
    found = {"%2Ebashrc": b"1", "%2Eboinc_gahp.json": b"2", "a/%2Ex/out": b"3", "b/out": b"4"}
    project = HostileOutputs({**outputs})
    project.collect(home)
    assert files(home) == found
    (home / "%2Ebashrc").unlink()
    again = project.collect(home, found.keys() - {"%2Ebashrc"})
    assert [path for path, size in again.files.items() if size] == [home / "%2Ebashrc"]
    assert files(home) == found


def test_write_through_a_link_that_is_called_as_a_job_is(tmp_path, elsewhere):
    path = tmp_path / folders.folder_name("job")
    path.symlink_to(elsewhere)
    folder = folders.Folder(path, FinishedJob("job", 1, 2), stderr=True, again=False)
    chosen = pytest.raises(OutputError, match="job' is a symbolic link, and the project chose")
    with chosen:
        folder.make(Directories())
    with chosen:
        HostileOutputs({"out": b"theirs"}).collect(path)
    assert files(elsewhere) == {}


# -- a project or a volunteer, by sizes


def endless(piece):
    while True:
        yield piece


SMALL = JobSettings(max_output_bytes=3_000_000)
TOO_LARGE = r"larger than 3000000 bytes.*max_output_bytes"
MORE_THAN_TOLD = r"larger than the 1000000 bytes.*max_nbytes"


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "of empty gzip members"])
def test_fill_the_disk_by_an_output_that_never_ends(compressed, home):
    piece = gzip.compress(b"") * 3000 if compressed else bytes(65536)
    HostileOutputs({"out": lambda: endless(piece)}, compressed=compressed).check_refused(
        TOO_LARGE, home, jobs=SMALL
    )
    assert files(home) == {}


def test_fill_the_disk_where_the_jobs_or_the_apps_template_says_some_megabytes(home):
    project = HostileOutputs({"out": lambda: endless(bytes(65536))})
    own = project.own_template(1_000_000)
    project.check_refused(MORE_THAN_TOLD, home, own=own)
    project.check_refused(r"larger than the 5000000 bytes.*or what the project", home)
    assert files(home) == {}
    HostileOutputs({"out": bytes(1_000_000)}).fetch(home, own=own)
    assert len(files(home)["out"]) == 1_000_000


def test_fill_the_disk_by_little_that_is_unpacked_to_much(home):
    project = HostileOutputs({"out": gzip.compress(bytes(50_000_000))}, compressed=True)
    project.check_refused(TOO_LARGE, home, jobs=SMALL)
    own = project.own_template(1_000_000)
    project.check_refused(MORE_THAN_TOLD, home, own=own)
    assert files(home) == {}


def entry(comment=b""):
    """Return an entry of a zip archive's list of members (APPNOTE.TXT, 4.3.12)."""
    lengths = (1, 0, len(comment))
    head = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *[0] * 9, *lengths, *[0] * 4)
    return head + b"x" + comment


def end64(count, size):
    """Return the record at an archive's end that zip64 has (4.3.14)."""
    return struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, 0)


def locator(at):
    """Return the record that tells where that one is (4.3.15)."""
    return struct.pack("<4sLQL", b"PK\x06\x07", 0, at, 1)


def end(count, size):
    """Return the record at an archive's end (4.3.16)."""
    return struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, size, 0, 0)


MEMBERS = 110_000


def hidden(how):
    """Return an archive with very many members, which tells in one place that there are few."""
    listed = entry() * MEMBERS
    if how == "in a decoy":
        listed += entry(end64(1, 47))
    if how == "in the short record":
        return listed + end64(MEMBERS, len(listed)) + locator(len(listed)) + end(1, 0xFFFFFFFF)
    return listed + end(1, len(listed))


@pytest.mark.long
@pytest.mark.parametrize("how", ["in a decoy", "in the only record", "in the short record"])
def test_fill_the_memory_by_an_archive_that_hides_how_many_members_it_has(how, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(hidden(how))
    what = "more than 100000 members"
    peak = most_memory(lambda: check_refused(what, path, max_files=100_000, kind=ZipArchive))
    assert peak < 3 * path.stat().st_size, f"{peak} bytes"


@pytest.fixture
def nfs(monkeypatch):
    """Locks as Linux makes them on NFS: of a file's bytes, which wants one open for writing."""
    flock = fcntl.flock

    def as_on_nfs(descriptor, operation):
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", as_on_nfs)


@pytest.mark.usefixtures("nfs")
def test_left_overs_on_nfs_are_swept_and_those_in_use_are_not(home):
    left = foreseen(home / "out")
    left.touch()
    with Temporaries().file(home / "out") as file, file.room() as room:
        (room / "member").touch()
        sweep(home)
        assert sorted(home.iterdir()) == sorted([file.path, room])
        assert (room / "member").exists()
