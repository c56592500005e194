"""The engine's commands that the wrapper makes: those that the real one was seen to make."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.localproject.errors import JobFailed
from boinc_gahp.localproject.hosts.wrapper_commands import (
    Config,
    ContainerJob,
    Options,
    image_is_listed,
    read_config,
    read_options,
)

JOB = ContainerJob("podman", "h_p", "w_u", "w_u_0")


def job(text, *arguments, ncpus=1.0):
    config = read_config(text.encode())
    return replace(JOB, config=config, options=read_options(arguments), ncpus=ncpus)


@pytest.mark.parametrize(
    ("made", "command"),
    [
        (
            job('image_name = "i"\n'),
            'create --name boinc__h_p__w_u_0  -v "./":"/app"  --log-driver=k8s-file i',
        ),
        (
            job('image_name = "i"\n', "a", "$HOME", "--verbose", "`echo hi`"),
            'create --name boinc__h_p__w_u_0  -v "./":"/app"  -e ARGS=" a $HOME `echo hi`" '
            "--log-driver=k8s-file i",
        ),
        (
            job(
                'image_name = "i"\nmount = ["/tmp:/host"]\ncreate_args = "--network none"\n'
                'workdir = "/w"\n',
                ncpus=2,
            ),
            'create --name boinc__h_p__w_u_0  -v "./":"/w"  '
            "-v /tmp:/host --cpus 2.000000 --network none --log-driver=k8s-file i",
        ),
        (
            replace(JOB, engine="docker"),
            'create --name boinc__h_p__w_u_0  -v "./":"/app"  boinc__h_p__w_u',
        ),
    ],
)
def test_a_container_is_created_with_the_real_wrappers_command(made, command):
    assert made.create() == command


def test_an_image_is_built_with_the_real_wrappers_command():
    made = job('build_args = "--pull"\n', "--dockerfile", "D2")
    assert made.build() == 'build "." --retry 0 -t boinc__h_p__w_u -f D2 --pull'
    docker = replace(JOB, engine="docker")
    assert docker.build() == 'build "."  -t boinc__h_p__w_u -f Dockerfile '


def test_names_are_in_lower_case():
    made = replace(JOB, workunit="W_Ä", result="W_0")
    assert (made.image, made.container) == ("boinc__h_p__w_ä", "boinc__h_p__w_0")


@given(st.text(max_size=1200))
def test_a_command_never_has_more_than_1023_bytes(text):
    made = JOB.in_shell(f"create {text}").encode("utf-8", "surrogateescape")
    assert len(made) <= 1023
    assert f"podman create {text} 2>&1".encode("utf-8", "surrogatepass").startswith(made[:20])


@given(st.lists(st.text(), max_size=5))
def test_words_that_are_no_options_keep_their_order(words):
    own = [word for word in words if not word.startswith("--")]
    assert read_options(["--verbose", *own, "--sporadic"]).words == tuple(own)


def test_an_option_without_its_value_names_no_file():
    assert read_options(["--config"]) == Options(config="(null)")


def test_keys_of_job_toml_are_read_and_others_are_not():
    text = 'workdir = "/w"\nimage_name = "i"\nbuild_args = "b"\ncreate_args = "c"\nmount = ["m"]\n'
    assert read_config(f'{text}new = "x"\n'.encode()) == Config("/w", "i", "b", "c", ("m",))
    assert read_config(b"") == Config()


@given(st.binary(max_size=200))
def test_any_job_toml_is_read_or_refused(text):
    with suppress(JobFailed):
        assert isinstance(read_config(text).mount, tuple)


@pytest.mark.parametrize(
    ("image", "listed"),
    [("boinc__a", True), ("bb", True), ("boinc__a:latest", False), ("boinc", False), ("b", True)],
)
def test_an_image_is_found_by_its_name_and_a_space(image, listed):
    listing = (
        "REPOSITORY          TAG         IMAGE ID\n"
        "localhost/boinc__a  latest      6a771098e02b\n"
        "localhost/bb        latest      e40324df9a3d\n"
    )
    assert image_is_listed(listing, image) == listed
