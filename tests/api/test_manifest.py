"""A manifest keeps all that is needed to send a job again."""

import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api.manifest import Lineage, Manifest, check_line, describe
from boinc_gahp.api.manifest_files import difference
from boinc_gahp.api.project import Project
from boinc_gahp.config.settings import Settings, State
from boinc_gahp.errors import BatchConflict, StagingError
from boinc_gahp.submit.types import (
    InlineFile,
    Job,
    LocalFile,
    Parameters,
    RemoteFile,
    StagedFile,
    SubmitRequest,
)


def md5(text):
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def kept(job, **md5s):
    return describe(SubmitRequest("b", "app", [("j", job)]), md5s).job("j")


texts = st.text(max_size=6)
jobs = st.builds(
    Job,
    args=st.lists(texts, max_size=3).map(tuple),
    inputs=st.dictionaries(
        texts,
        st.builds(InlineFile, st.text(min_size=1, max_size=6))
        | st.builds(StagedFile, st.from_regex(r"[a-z0-9.]{1,40}", fullmatch=True))
        | st.builds(
            RemoteFile,
            st.from_regex(r"https?://[a-z]{1,3}/[a-z,]{0,5}", fullmatch=True),
            st.integers(0, 10**12),
            texts.map(md5),
        ),
        max_size=3,
    ),
    priority=st.none() | st.integers(-5, 5),
    fpops=st.none() | st.floats(1, 1e15),
    input_template=st.none() | texts,
    output_template=st.none() | texts,
)


@given(jobs)
def test_a_job_is_sent_again_as_it_was_sent(job):
    assert kept(job).again() == job


def test_a_local_file_is_sent_again_if_it_is_the_same_else_the_projects_copy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.txt"
    path.write_text("one")
    job = kept(Job("", {"in": LocalFile("a.txt")}), **{"a.txt": md5("one")})
    assert job.paths == [str(path)]
    assert job.again().inputs == {"in": LocalFile(str(path))}
    assert job.again({str(path): md5("one")}).inputs == {"in": LocalFile(str(path))}
    path.write_text("two")
    assert job.again().inputs == {"in": StagedFile(f"{md5('one')}.txt")}
    path.unlink()
    assert job.again().inputs == {"in": StagedFile(f"{md5('one')}.txt")}
    with pytest.raises(StagingError, match="not known what was in its input 'in'"):
        kept(Job("", {"in": path})).again()


def test_what_is_kept_is_read_again_by_its_account_on_its_machine(site):
    manifests = site.project.session.manifests
    odd = "\udcff\n\t\"'é\0"
    request = SubmitRequest(
        "b",
        "app",
        [
            (odd, Job((odd, ""), {"in": InlineFile(odd)}, input_template="<a/>")),
            ("two", Job((), {"in": InlineFile("t")}, priority=3)),
        ],
        parameters=Parameters(delay_bound=7200.0),
        app_version_num=5,
    )
    manifest = replace(describe(request, {}, Lineage(6, {"two": "lost"})), batch_id=7)
    assert manifests.write("b", manifest, new=True)
    assert not manifests.write("b", replace(manifest, batch_id=8), new=True)
    for project in (site.open(home="other"), site.somebody_else()):
        assert project.session.manifests.find("b") is None
    found = manifests.of("b", 7)
    assert found == manifest
    assert manifests.of("b", 8) is None
    assert (found.app_name, found.parent) == ("app", 6)
    assert found.options["parameters"] == Parameters(delay_bound=7200.0)
    assert found.options["app_version_num"] == 5
    assert (found.job(odd).retry_of, found.job("two").retry_of) == (None, "lost")
    assert found.job(odd).again() == request.jobs[0][1]
    assert set(found.texts.values()) == {odd, "t", "<a/>"}


@pytest.mark.parametrize("form", [1, 3])
def test_a_manifest_of_another_form_is_refused_and_stays_as_it_is(site, form):
    batch = site.submit(1)
    (path,) = (site.directory / "state" / "submitted").iterdir()
    with gzip.open(path, "rt") as file:
        head, *lines = file
    with gzip.open(path, "wt") as file:
        file.writelines([json.dumps({**json.loads(head), "format": form}) + "\n", *lines])
    before = path.read_bytes()
    with pytest.raises(BatchConflict, match=f"{path}; .* or move the file away"):
        site.submit(1)
    assert path.read_bytes() == before
    assert site.project.session.manifests.of(site.name, batch.id) is None
    path.unlink()
    assert not site.submit(1).compared


@pytest.fixture(scope="module")
def file_of_a_manifest(tmp_path_factory):
    """The contents of the file of a batch ``b`` with 20 jobs."""
    manifests = manifests_in(tmp_path_factory.mktemp("state"))
    listed = [(f"j{n}", Job(("-n", str(n)), {"in": LocalFile("/a.txt")})) for n in range(20)]
    manifests.write("b", describe(SubmitRequest("b", "app", listed), {}), new=True)
    (path,) = (each for each in manifests._directory.iterdir())
    return path.read_bytes()


def manifests_in(directory):
    settings = Settings(state=State(dir=directory))
    project = Project("http://127.0.0.1:1/", "0" * 32, settings=settings)
    with project:
        return project.session.manifests


@given(st.data())
def test_a_file_that_was_damaged_is_unknown_or_whole(file_of_a_manifest, data):
    damaged = bytearray(file_of_a_manifest)
    place = data.draw(st.integers(0, len(damaged) - 1))
    damaged[place] = data.draw(st.integers(0, 255))
    damaged = damaged[: data.draw(st.integers(0, len(damaged)))]
    with TemporaryDirectory() as directory:
        manifests = manifests_in(Path(directory))
        path = manifests._path("b")
        path.parent.mkdir()
        path.write_bytes(damaged)
        found = manifests.find("b")
    assert found is None or [found.job(name).args for name in found.jobs] == [
        ("-n", str(n)) for n in range(20)
    ]


def test_the_form_of_a_file_without_its_end_is_not_believed(tmp_path):
    manifests = manifests_in(tmp_path)
    path = manifests._path("b")
    path.parent.mkdir()
    whole = gzip.compress(b'{"format": 99}\n')
    path.write_bytes(whole[:-1])
    assert manifests.find("b") is None
    path.write_bytes(whole)
    with pytest.raises(BatchConflict, match="another version"):
        manifests.find("b")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)


@given(
    st.dictionaries(
        st.sampled_from(
            ["args", "inputs", "sources", "parameters", "retry_of", "priority", "input_template"]
        ),
        VALUES,
    )
    | VALUES
)
def test_a_line_that_was_edited_is_refused_or_a_job(line):
    text = json.dumps(line)
    try:
        check_line(text)
    except ValueError:
        return
    manifest = Manifest(1, 0.0, refused=False, common={}, jobs={"j": text})
    assert manifest.job("j").name == "j"
    assert manifest.columns()
    other = replace(manifest, jobs={"j": '{"args": ["x"], "inputs": {"in": null}}'})
    assert isinstance(difference(manifest, other), str)
