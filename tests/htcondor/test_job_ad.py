"""What a job's ad asks for, and why it cannot be."""

import pytest

from boinc_gahp.config.settings import HTCondor
from boinc_gahp.htcondor._description import JobDescription
from boinc_gahp.htcondor._job_ad import read_ad
from boinc_gahp.htcondor.attributes import AdRefused, option
from boinc_gahp.submit.types import Parameters
from boinc_gahp.text import visible
from tests.htcondor.ads import OPTIONAL, SETTINGS, ad, job, local, refused

# All of it.


def test_an_ad_as_htcondor_sent_it_is_read(tmp_path):
    # Recorded (gridmanager-batch.rst, "A whole BLAH_JOB_SUBMIT line"), without the environment and
    # the directory, in another directory.
    inputs = local(tmp_path, "a.dat", "in data.dat", "in.txt")
    (tmp_path / "results").mkdir()
    text = (
        r'[ In = "in.txt"; Cmd = "/home/alice/t1/app.sh"; Err = "job.1.0.err"; '
        rf'Iwd = "{tmp_path}"; Out = "job.1.0.out"; Queue = "projqueue"; gridtype = "boinc"; '
        r'Arguments = "one two'
        r"' 'words \"dq\" its $ENV back\\slash semi;colon br]ack[et"
        r'"; BoincApp2 = "viaremote"; GPUNumber = 1; Environment = ""; BatchProject = "einstein"; '
        r'BatchRuntime = 7200; GridResource = "batch boinc"; '
        r'JobDirectory = "home_bl_127.0.0.1_19618_vm_1.0_1795261016"; RequestMemory = 512; '
        r'TransferInput = "a.dat,in data.dat"; CERequirements = Custom == "hello world" && '
        r'BoincApp == "uppercase"; TransferOutput = "out1.dat,out2.dat"; '
        r'BatchExtraSubmitArgs = "--app foo --delay-bound 86400"; '
        r'TransferOutputRemaps = "out1.dat=results/out1_1.dat;out2.dat=/tmp/x2.dat" ]'
    )
    with pytest.raises(AdRefused, match=r'the job has request_gpus: .*BoincIgnore = "gpus"'):
        read_ad(text, SETTINGS)
    assert read_ad(text, HTCondor(ignore="gpus batch_project")) == JobDescription(
        job_directory="home_bl_127.0.0.1_19618_vm_1.0_1795261016",
        project=None,
        app_name="foo",
        iwd=str(tmp_path),
        args=(
            *("one", "two words", '"dq"', "its", "$ENV", "back\\slash", "semi;colon", "br]ack[et"),
        ),
        inputs=inputs,
        outputs=("out1.dat", "out2.dat"),
        remaps=(("out1.dat", "results/out1_1.dat"), ("out2.dat", "/tmp/x2.dat")),
        stdout="job.1.0.out",
        stderr="job.1.0.err",
        parameters=Parameters(
            memory_bound=512 * 2**20, delay_bound=86400.0, fpops_bound=7200 * 1e11
        ),
    )


def test_the_least_ad_leaves_all_to_the_app(tmp_path):
    least = JobDescription(
        "home_bl_127.0.0.1_9618_vm_1.0_1795261016", None, "uppercase", str(tmp_path)
    )
    assert job(tmp_path) == least
    assert job(tmp_path, **dict.fromkeys(OPTIONAL, b"undefined")) == least
    assert job(tmp_path, **dict.fromkeys(OPTIONAL, b"NoSuchAttribute")) == least


def test_attributes_may_be_expressions_and_written_in_any_case(tmp_path):
    found = job(
        tmp_path,
        BoincApp=b'strcat("upper", boincapp2)',
        BoincApp2="case",
        BOINCDELAYBOUND=b"24 * 3600",
        RequestMemory=b"ifThenElse(MemoryUsage =!= undefined, MemoryUsage, 1024)",
    )
    assert found.app_name == "uppercase"
    assert found.parameters == Parameters(delay_bound=86400, memory_bound=2**30)


@pytest.mark.parametrize("name", ["BoincApp", "Iwd", "TransferInput", "RequestMemory", "StageCmd"])
def test_an_attribute_whose_value_is_an_error_is_named(tmp_path, name):
    values = {"BoincApp": None} if name == "StageCmd" else {}
    text = refused(tmp_path, **(values | {name: b"1/0"}))
    assert text.startswith(name)
    assert "1 / 0" in text


def test_a_value_that_python_cannot_hold_is_named(tmp_path):
    assert "BoincApp cannot be evaluated" in refused(tmp_path, BoincApp=b'{"\\377"}')


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        '[ A = "' + '\\"' * 500_000,
        '[ A = "x\0" ]',
        '[ A = "\\000" ]',
        '[ A = "\ud800" ]',
        "NULL",
    ],
)
def test_what_is_no_ad_is_refused(text):
    with pytest.raises(AdRefused, match="ad cannot be read"):
        read_ad(text, SETTINGS)


def test_an_expression_that_would_overflow_the_parser_is_refused():
    with pytest.raises(AdRefused, match="more than 50000 characters"):
        read_ad(f"[ A = 1{'+1' * 500_000} ]", SETTINGS)


@pytest.mark.parametrize("name", ["JobDirectory", "Iwd"])
def test_an_ad_without_what_htcondor_always_sends_is_refused(tmp_path, name):
    text = refused(tmp_path, **{name: None})
    assert name in text
    assert "missing" in text


@pytest.mark.parametrize("iwd", ["relative", "/no/such/directory", "/etc/passwd", "/a\udcffb"])
def test_a_directory_that_is_none_is_named(tmp_path, iwd):
    text = refused(tmp_path, Iwd=iwd.encode("utf-8", "surrogateescape").join([b'"', b'"']))
    assert visible(iwd) in text


# Project and app.


@pytest.mark.parametrize(
    ("values", "project"),
    [
        ({}, None),
        ({"BoincProject": "lhc"}, "lhc"),
        ({"BoincProject": " lhc ", "Queue": "app@other"}, "lhc"),
        ({"BoincProject": "", "Queue": "app@other"}, "other"),
        ({"Queue": "@lhc"}, "lhc"),
        ({"Queue": "app@"}, None),
        ({"Queue": "app@https://lhc.example.org/home/"}, "https://lhc.example.org/home/"),
        ({"BatchExtraSubmitArgs": "--project lhc", "Queue": "app@other"}, "lhc"),
        ({"BoincProject": "a", "BatchExtraSubmitArgs": "--project=b"}, "a"),
    ],
)
def test_the_project(tmp_path, values, project):
    assert job(tmp_path, **values).project == project


@pytest.mark.parametrize(
    ("values", "app"),
    [
        ({"BoincApp": "worker", "Queue": "other", "StageCmd": True}, "worker"),
        ({"Queue": "worker"}, "worker"),
        ({"Queue": "worker@lhc", "StageCmd": True}, "worker"),
        ({"BatchExtraSubmitArgs": "--app worker", "Queue": "other"}, "worker"),
        ({"StageCmd": False, "Cmd": "/home/alice/worker"}, "worker"),
        ({"StageCmd": False, "Cmd": "worker", "Queue": "@lhc"}, "worker"),
    ],
)
def test_the_app(tmp_path, values, app):
    assert job(tmp_path, **({"BoincApp": None} | values)).app_name == app


@pytest.mark.parametrize("stage", [None, True, b"undefined", "false"])
def test_a_job_with_an_executable_and_no_app_is_told_how_to_name_one(tmp_path, stage):
    text = refused(tmp_path, BoincApp=None, Queue="@lhc", StageCmd=stage)
    for words in ('executable ("run.sh")', "+remote_BoincApp", "transfer_executable = false"):
        assert words in text


def test_an_executable_that_is_not_in_the_jobs_directory_is_the_apps_name(tmp_path):
    # HTCondor before 25.12 says nothing of StageCmd, and makes the name a path.
    named = {"BoincApp": None, "Cmd": str(tmp_path / "worker")}
    assert job(tmp_path, **named).app_name == "worker"
    # It would be a transferred one's: the submit directory of a spooled job, another directory.
    assert "executable" in refused(tmp_path, BoincApp=None, Cmd=str(tmp_path / "bin" / "worker"))
    assert "executable" in refused(tmp_path, BoincApp=None, Cmd="/usr/bin/worker")
    assert "executable" in refused(tmp_path, **named, StageCmd=True)
    (tmp_path / "worker").symlink_to("nowhere")
    assert "executable" in refused(tmp_path, **named)


@pytest.mark.parametrize(
    ("word", "values", "said"),
    [
        ("cpus", {"RequestCpus": 8}, "request_cpus = 8: how many processors"),
        ("gpus", {"GPUNumber": 1}, "request_gpus: "),
        ("gpus", {"RequestGPUs": 2}, "request_gpus: "),
        ("batch_project", {"BatchProject": "ab12"}, "batch_project: an account of a batch system"),
    ],
)
def test_a_request_that_volunteers_cannot_be_given_holds_the_job_unless_it_is_ignored(
    tmp_path, word, values, said
):
    text = refused(tmp_path, **values)
    assert f"the job has {said}" in text
    assert f'+remote_BoincIgnore = "{word}"' in text
    assert job(tmp_path, **values, BoincIgnore=f"environment, {word}") == job(tmp_path)
    assert read_ad(ad(tmp_path, **values), HTCondor(ignore=word)) == job(tmp_path)


def test_what_htcondor_requests_by_itself_holds_no_job(tmp_path):
    assert job(tmp_path, RequestCpus=1, RequestGPUs=0, GPUNumber=b"undefined") == job(tmp_path)


def test_what_becomes_of_a_failed_job_is_one_of_two_words(tmp_path):
    assert job(tmp_path, BoincFailedJobs="Hold").failed_jobs == "hold"
    told = 'BoincFailedJobs is "retry"; one of complete, hold is expected'
    assert refused(tmp_path, BoincFailedJobs="retry") == told


def test_requested_disk_and_run_time_are_bounds_that_give_way_to_boincs_own(tmp_path):
    found = job(tmp_path, RequestDisk=4 * 2**20, BatchRuntime=3600).parameters
    assert (found.disk_bound, found.fpops_bound) == (4 * 2**30, 3600 * 1e11)
    own = {"BoincRscDiskBound": 7, "BoincRscFpopsBound": 8}
    found = job(tmp_path, RequestDisk=4, BatchRuntime=3600, **own).parameters
    assert (found.disk_bound, found.fpops_bound) == (7, 8)
    assert "BatchRuntime is 0" in refused(tmp_path, BatchRuntime=0)


def test_a_job_without_any_app_is_refused(tmp_path):
    assert "names no app" in refused(tmp_path, BoincApp=None, Cmd=None, StageCmd=False)


@pytest.mark.parametrize("name", ["BoincApp", "BoincProject", "Queue"])
def test_a_name_that_is_no_text_is_named(tmp_path, name):
    assert f"{name} is 7; a text in quotes" in refused(tmp_path, **{"BoincApp": None, name: 7})
    assert "not UTF-8" in refused(tmp_path, **{"BoincApp": None, name: b'"a\xff@b\xff"'})


# Environment and arguments.


def test_an_environment_is_refused_with_its_names_and_without_its_values(tmp_path):
    text = refused(tmp_path, Environment="DQ=\"z\" FOO=geheim SP=a' 'b")
    assert "environment (DQ, FOO, SP)" in text
    assert "geheim" not in text
    assert "environment" in refused(tmp_path, Environment="'")
    assert read_ad(ad(tmp_path, Environment="A=b"), HTCondor(ignore="environment"))


@pytest.mark.parametrize("text", ["", "  ", None])
def test_an_environment_with_nothing_in_it_does_not_matter(tmp_path, text):
    assert job(tmp_path, Environment=text)


def test_arguments_in_the_old_syntax_are_split_at_white_space(tmp_path):
    # As condor_submit of 23.9.6 made it of  arguments = a 'b c' \"q\" x\y  last
    text = " a 'b c' \"q\" x\\y\t last\n"
    words = ("a", "'b", "c'", '"q"', "x\\y", "last")
    assert job(tmp_path, Arguments=None, Args=text).args == words
    assert job(tmp_path, Arguments="", Args=text).args == words
    assert job(tmp_path, Arguments="'b c'", Args=text).args == ("b c",)
    assert job(tmp_path, Arguments=None, Args=" ").args == ()


def test_arguments_that_cannot_be_taken_apart_are_shown(tmp_path):
    assert 'Arguments is "a \'b"' in refused(tmp_path, Arguments="a 'b")
    assert "Arguments is 5" in refused(tmp_path, Arguments=5)


def test_bytes_that_are_no_utf_8_arrive_in_arguments_and_names(tmp_path):
    name = "\udcff\\\udc80é"
    files = local(tmp_path, name)
    raw = b'"\xff\\\\\\\x80\xc3\xa9"'
    assert job(tmp_path, TransferInput=raw, Arguments=raw).inputs == files
    assert job(tmp_path, Arguments=raw).args == (name,)
    # As HTCondor writes them.
    assert job(tmp_path, TransferInput=b'"\\377\\\\\\200\\303\\251"').inputs == files


# Parameters.


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("RscFpopsEst", "fpops_est"),
        ("RscFpopsBound", "fpops_bound"),
        ("RscMemoryBound", "memory_bound"),
        ("RscDiskBound", "disk_bound"),
        ("DelayBound", "delay_bound"),
    ],
)
def test_an_amount_is_a_number_or_a_text_that_is_one(tmp_path, name, field):
    for value in (b"1e12", b"1000000000000", "1e12", " 1e12 "):
        assert getattr(job(tmp_path, **{f"Boinc{name}": value}).parameters, field) == 1e12
    extra = f"{option(name)} 1e12"
    assert getattr(job(tmp_path, BatchExtraSubmitArgs=extra).parameters, field) == 1e12
    both = {f"Boinc{name}": 5, "BatchExtraSubmitArgs": extra}
    assert getattr(job(tmp_path, **both).parameters, field) == 5
    for wrong in (0, -1, "x", "1_0", True, b"{1}", "nan", "inf", b'real("INF")'):
        text = refused(tmp_path, **{f"Boinc{name}": wrong})
        assert text.startswith(f"Boinc{name} is ")
        assert "greater than 0" in text
    text = refused(tmp_path, BatchExtraSubmitArgs=f"{option(name)}=much")
    assert f'{option(name)} in BatchExtraSubmitArgs is "much"' in text


def test_whole_numbers_are_checked(tmp_path):
    found = job(tmp_path, BoincPriority=-3, BoincAppVersionNum="102")
    assert (found.priority, found.app_version_num) == (-3, 102)
    for name, wrong in [
        ("BoincPriority", 1.5),
        ("BoincPriority", 2**31),
        ("BoincPriority", "high"),
        ("BoincAppVersionNum", 0),
        ("BoincAppVersionNum", "1.2"),
    ]:
        text = refused(tmp_path, **{name: wrong})
        assert text.startswith(f"{name} is ")
        assert str(wrong) in text


def test_requested_memory_is_in_megabytes_and_gives_way_to_the_bound(tmp_path):
    assert job(tmp_path, RequestMemory=0).parameters.memory_bound is None
    assert job(tmp_path, RequestMemory=1.5).parameters.memory_bound == 1.5 * 2**20
    assert job(tmp_path, RequestMemory=512, BoincRscMemoryBound=7).parameters.memory_bound == 7
    assert "RequestMemory is -1" in refused(tmp_path, RequestMemory=-1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("--mem 5", ['"--mem"', "--app", "--rsc-fpops-est", "--output-template"]),
        ("-l walltime=1", ['"-l"', "is not an option"]),
        ("--app", ["ends with --app", "needs a value"]),
        ("--app 'x", ["cannot be read", "quotation"]),
    ],
)
def test_options_that_there_are_not_are_named_with_those_that_there_are(tmp_path, text, words):
    found = refused(tmp_path, BatchExtraSubmitArgs=text)
    for each in words:
        assert each in found
