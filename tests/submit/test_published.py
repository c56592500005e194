"""Large input files on a web server of ours: there before their jobs, and no longer than these."""

import hashlib
import json
import os
import signal
import stat
import tarfile
import time
from dataclasses import replace
from io import BytesIO

import pytest

from boinc_gahp.config.places import user_name
from boinc_gahp.config.settings import ProjectSettings, Settings
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import ConfigError, JobRefused, StagingError
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.states import BatchState
from boinc_gahp.submit import published as module
from boinc_gahp.submit.control import retire_batch
from boinc_gahp.submit.digests import Digest
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.published import Published, usage
from boinc_gahp.submit.types import Job, LocalFile, SubmitRequest
from tests.helpers import served
from tests.inside import change, staged_files

LARGE = b"large\n" * 500_000
DAY = 86400.0


@pytest.fixture
def place(tmp_path):
    """A directory, and the settings of a project that has it handed out."""
    directory = tmp_path / "public"
    directory.mkdir()
    with served(directory) as address:
        yield {"publish_directory": str(directory), "publish_url": ProjectUrl(address)}


def own(place):
    """Return this user's directory."""
    return module.Path(place["publish_directory"]) / user_name()


def batch(site, name, *contents):
    """Return a request with a job for each of these inputs."""
    files = [site.file(each) for each in contents]
    jobs = [(f"{name}#{n}", Job(inputs={"in": file})) for n, file in enumerate(files)]
    return SubmitRequest(name, "uppercase", jobs)


def marks(place):
    return [json.loads(path.read_bytes()) for path in (own(place) / "marks").iterdir()]


def change_mark(public, **values):
    [path] = (own(public) / "marks").iterdir()
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **values}))


def tidied(site, place, **more):
    """Do what is done once an hour; return how many files are left."""
    with site.context(**place, **more) as context:
        context.tidy()
    return usage(place["publish_directory"])[0]


@pytest.mark.parametrize("above", [1 << 20, 1 << 30], ids=["by its size", "after a refusal"])
def test_a_file_that_the_project_does_not_take_is_published_and_goes_when_its_batch_is_retired(
    site, place, above
):
    request, small = batch(site, f"large{above}", LARGE, b"small"), hashlib.md5(b"small")
    md5 = hashlib.md5(LARGE).hexdigest()
    url = f"{place['publish_url']}{user_name()}/{md5[:2]}/{md5}"
    before = os.umask(0o077)
    for _ in range(2):
        site.submit(request, publish_above=above, **place)
    os.umask(before)
    assert site.proxy.count("submit_batch") == 1
    assert md5 not in " ".join(staged_files(site.local))
    assert small.hexdigest() in " ".join(staged_files(site.local))
    text = site.row("workunit", request.jobs[0][0])["xml_doc"]
    assert (url in text, f"<nbytes>{len(LARGE)}" in text, md5 in text) == (True, True, True)
    path = own(place) / md5[:2] / md5
    assert path.read_bytes() == LARGE
    # Everybody can read it who knows its name, and nobody can list names.
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent, own(place))]
    assert modes == [0o644, 0o711, 0o711]
    other = batch(site, f"other{above}", LARGE)
    site.submit(other, publish_above=1 << 20, **place)
    for each, left in ((request, 1), (other, 0)):
        with site.context(**place) as context:
            retire_batch(context, each.batch_name)
        assert usage(place["publish_directory"])[0] == left
    assert marks(place) == []


def test_a_wrong_address_is_told_before_anything_is_made(site, place):
    request = batch(site, "nowhere", LARGE)
    wrong = {**place, "publish_url": ProjectUrl(f"{place['publish_url']}no/")}
    with pytest.raises(StagingError, match=r"404; publish_url has to be the addr"):
        site.submit(request, **wrong)
    assert site.proxy.count("create_batch") == 0
    md5 = hashlib.md5(LARGE).hexdigest()
    target = module.Path(place["publish_directory"], "no", user_name(), md5[:2])
    target.mkdir(parents=True)
    for contents, words in ((LARGE[1:], ": 2999999 bytes of"), (LARGE[::-1], "another file")):
        (target / md5).write_bytes(contents)
        with pytest.raises(StagingError, match=words):
            site.submit(request, **wrong)
    with pytest.raises(ConfigError, match="set both, or none"):
        site.submit(request, publish_url=place["publish_url"])


def test_a_longer_address_counts_in_the_jobs_line(site, place):
    long = {**place, "publish_url": ProjectUrl(f"{place['publish_url']}{'x' * 4000}/")}
    with pytest.raises(JobRefused, match="a project reads at most 4094"):
        site.submit(batch(site, "long", LARGE), **long)


def test_what_is_never_to_be_published_is_not_even_in_an_archive(site, place):
    packed = site.directory / "packed.tar"
    with tarfile.open(packed, "w") as archive:
        info = tarfile.TarInfo("private/key")
        info.size = len(LARGE)
        archive.addfile(info, BytesIO(LARGE))
    for path in (str(packed), site.file(LARGE).path):
        request = SubmitRequest("no", "uppercase", [("no#0", Job(inputs={"in": LocalFile(path)}))])
        with pytest.raises(StagingError, match="bytes, more than 127"):
            site.submit(request, publish_never="private/* *-in.txt", **place)
    assert usage(place["publish_directory"]) == (0, 0)


#: The steps of a submit, in their order.
STEPS = [
    (module, "_write"),
    (os, "fchmod"),
    (Published, "_put"),
    (Published, "_ask"),
    (WebRpcs, "create_batch"),
    (WebRpcs, "submit_batch"),
]


def submit_and_die(site, request, place, step, *, after):
    """Submit in a process that is killed before or after one of the steps."""
    owner, name = step
    whole = getattr(owner, name)

    def die(*args, **kwargs):
        if after:
            whole(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    process = os.fork()
    if not process:
        try:
            setattr(owner, name, die)
            site.submit(request, **place)
        finally:
            os._exit(1)
    assert os.waitpid(process, 0)[1] == signal.SIGKILL


@pytest.mark.processes
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step[1])
def test_after_a_kill_at_any_step_a_job_has_its_files_and_nothing_stays(site, place, step, after):
    request = batch(site, f"killed{step[1]}{after}", LARGE)
    submit_and_die(site, request, place, step, after=after)
    # Another process finds that nothing is to be removed yet.
    is_used = bool(site.workunits(request))
    assert tidied(site, place) >= is_used
    site.submit(request, **place)
    assert site.workunits(request) == site.names(request)
    assert usage(place["publish_directory"])[1] >= len(LARGE)
    with site.context(**place) as context:
        retire_batch(context, request.batch_name)
    assert usage(place["publish_directory"]) == (0, 0)


def test_the_project_says_how_long_a_file_is_needed(site, place):
    request = batch(site, "needed", LARGE)
    with site.context(**place) as context:
        batch_id = submit(context, replace(request, lease=DAY))
    # Its lease is extended from elsewhere.
    with site.project() as project:
        project.set_expire_time(time.time() + 100 * DAY, batch_id=batch_id)
    change_mark(place, until=time.time() - 1)
    assert tidied(site, place) == 1
    assert marks(place)[0]["until"] == pytest.approx(time.time() + 107 * DAY, abs=60)
    # All its jobs have ended: they may be sent again for a while.
    site.set_state(request, BatchState.COMPLETE.value)
    change(site.local, "UPDATE workunit SET assimilate_state = 2, canonical_resultid = 1")
    assert tidied(site, place) == 1
    assert marks(place)[0]["until"] == pytest.approx(time.time() + 7 * DAY, abs=60)
    # It is retired from elsewhere; a batch that is not made yet looks the same.
    with site.project() as project:
        project.retire_batch(batch_id=batch_id)
    assert tidied(site, place) == 1
    change_mark(place, at=time.time() - 8 * DAY)
    assert tidied(site, place) == 0


def test_a_project_that_is_down_or_not_asked_counts_by_the_lease_alone(site, place):
    request = batch(site, "down", LARGE)
    site.submit(request, **place)
    change_mark(place, place="another project", at=0.0)
    assert tidied(site, place) == 1
    change_mark(place, until=time.time() - 1)
    with site.context(**place) as context:
        context.published.tidy(list)
        assert usage(place["publish_directory"])[0] == 0
        # Once an hour.
        context.published.tidy(lambda: pytest.fail("asked again"))


def test_a_probe_leaves_nothing_nor_does_a_file_that_changes(site, place):
    settings = ProjectSettings(ProjectUrl(site.proxy.url), **place)
    published, path = Published(Settings(), settings, ""), site.file(LARGE).path
    published.probe()
    with pytest.raises(StagingError, match="changed while it was read"):
        published.publish("b", [Digest("x", path, len(LARGE), "0" * 32)], 0.0)
    assert usage(place["publish_directory"]) == (0, 0)
    with pytest.raises(StagingError, match="cannot be published in"):
        Published(Settings(), replace(settings, publish_directory="/none"), "").probe()
