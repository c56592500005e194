"""A job's description in the ledger."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.containers.image import Image
from boinc_gahp.containers.script import Program
from boinc_gahp.htcondor._description import JobDescription
from boinc_gahp.submit.container_jobs import ContainerJob
from boinc_gahp.submit.generated_files import Member
from boinc_gahp.submit.types import LocalFile, Parameters, RemoteFile
from tests.helpers import TEXTS

SIZES = st.integers(0, 2**63 - 1)
AMOUNTS = st.none() | st.floats(min_value=1e-3, max_value=1e30)
FILES = st.builds(LocalFile, TEXTS, st.tuples(SIZES, SIZES))
CONTAINERS = st.builds(
    ContainerJob,
    image=st.just(Image("registry", "debian")),
    command=st.just("./fit.py"),
    program=st.builds(Program, environment=st.lists(st.tuples(TEXTS, TEXTS)).map(tuple)),
    cpus=st.integers(1, 100),
    network=st.booleans(),
    trees=st.lists(st.builds(Member, TEXTS, TEXTS, TEXTS)).map(tuple),
)
DESCRIPTIONS = st.builds(
    JobDescription,
    job_directory=st.text(),
    project=st.none() | st.text(),
    app_name=st.text(),
    iwd=TEXTS,
    args=st.lists(TEXTS).map(tuple),
    inputs=st.lists(
        st.tuples(TEXTS, FILES)
        | st.tuples(st.text(), st.builds(RemoteFile, st.text(), SIZES, st.text()))
    ).map(tuple),
    outputs=st.none() | st.lists(TEXTS).map(tuple),
    remaps=st.lists(st.tuples(TEXTS, TEXTS)).map(tuple),
    stdout=st.none() | TEXTS,
    stderr=st.none() | TEXTS,
    parameters=st.builds(Parameters, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS),
    priority=st.none() | st.integers(-(2**31), 2**31 - 1),
    app_version_num=st.none() | st.integers(1, 2**31 - 1),
    input_template=st.none() | st.text(),
    output_template=st.none() | st.text(),
)

JOB = JobDescription("key", None, "uppercase", "/home/alice")


@given(DESCRIPTIONS | CONTAINERS.map(lambda container: replace(JOB, container=container)))
def test_a_description_survives_the_ledger(description):
    text = description.to_json()
    assert text.isascii()
    assert JobDescription.from_json(text) == description


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "1", "{}", '{"iwd":"/"}', '{"inputs":[[]]}', '{"strange":1}']
)
def test_what_is_no_description_is_a_value_error(text):
    with pytest.raises(ValueError, match=r".+"):
        JobDescription.from_json(text)


@pytest.mark.parametrize(
    "other",
    [
        {"app_name": "other"},
        {"parameters": Parameters(fpops_est=1e9)},
        {"parameters": Parameters(delay_bound=60.0)},
        {"app_version_num": 3},
        {"input_template": "<input_template/>"},
        {"output_template": "<output_template/>"},
    ],
    ids="".join,
)
def test_jobs_that_differ_in_what_a_batch_shares_do_not_go_together(other):
    assert JOB.group_key != replace(JOB, **other).group_key


def test_jobs_that_differ_in_what_is_their_own_go_together():
    other = replace(
        JOB,
        job_directory="key2",
        iwd="/elsewhere",
        args=("x",),
        inputs=(("a", LocalFile("/a", (1, 2))),),
        outputs=("out",),
        priority=7,
    )
    assert JOB.group_key == other.group_key
    assert len(JOB.group_key) == 32


def test_the_size_grows_with_what_travels_in_the_request():
    texts = ("<&\"'" * 10, "x" * 1000)
    inputs = (
        ("y", RemoteFile("http://x/" + "y" * 300, 1, "0" * 32)),
        ("a", LocalFile("/a", (1, 1))),
    )
    large = replace(JOB, args=texts, inputs=inputs, input_template="<" * 100)
    assert JOB.size < 500
    # A template may have to go with it.
    assert 1000 < replace(JOB, parameters=Parameters(delay_bound=60.0)).size - JOB.size < 5000
    # As XML escapes them: &lt; &amp; &quot; &#39;.
    assert large.size - JOB.size > 40 * 4 + 1000 + 300 + 100 * 4


@pytest.mark.parametrize(
    ("files", "nbytes"),
    [
        ((), 0),
        ((LocalFile("/a", (3, 0)), RemoteFile("http://x/b", 4, "0" * 32)), 7),
        ((LocalFile("/a", (3, 0)), LocalFile("/b")), None),
    ],
)
def test_a_job_receives_its_inputs_if_the_size_of_each_is_known(files, nbytes):
    job = replace(JOB, inputs=tuple((str(number), file) for number, file in enumerate(files)))
    assert job.bytes_received == nbytes
