"""Files of a stranger, such as a checkout, want to have a user's secrets sent along."""

import os
from types import SimpleNamespace

import pytest

from boinc_gahp import Project
from boinc_gahp.api.program_files import FileFinder
from boinc_gahp.api.programs import program_batch
from boinc_gahp.config.settings import Settings, Timeouts
from boinc_gahp.containers.rules import may_be_secret, secret_names
from boinc_gahp.errors import BadRequest, StagingError, TransportError
from boinc_gahp.htcondor.attributes import AdRefused
from boinc_gahp.submit.digests import Digests, stat_input
from boinc_gahp.submit.trees import look, walk
from tests.htcondor.ads import inside

SECRETS = [".ssh/id_rsa", ".config/gcloud/credentials.db", ".condor/tokens.d/pool"]


@pytest.fixture(params=SECRETS)
def secret(request, tmp_path):
    path = tmp_path / "home" / request.param
    path.parent.mkdir(parents=True)
    path.write_text("secret")
    return path


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """The working directory, with a stranger's directory ``data``."""
    path = tmp_path / "checkout"
    (path / "data/deep").mkdir(parents=True)
    (path / "data/a.csv").write_text("1,2\n")
    for kind in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind))
    monkeypatch.chdir(path)
    return path


def nowhere():
    settings = Settings(timeouts=Timeouts(connect=1, read=1, retry=0))
    return Project("http://127.0.0.1:9/test/", "0" * 32, settings=settings)


def by_command(_checkout, *inputs, **how):
    """Have a word name the directory; return how many files would be sent."""
    with nowhere() as project:
        made = program_batch(
            project.session, ["wc", "data"], image="x", app="docker", inputs=inputs, **how
        )
    return made.sources[-1].files


def by_function(_checkout, *inputs, **how):
    how["inputs"] = ["data", *inputs]
    with nowhere() as project:
        # It is refused before the project is asked, or nothing answers.
        project.function(len, app="docker", lease="1d", **how)([1])


def by_htcondor(checkout, *inputs, follow_links=False):
    names = ", ".join(["data", *inputs])
    found = inside(checkout, TransferInput=names, BoincFollowLinks=follow_links).trees
    return look(found[0].path).files


def by_snakemake(_checkout, *inputs, follow_links=False):
    pytest.importorskip("snakemake_interface_executor_plugins")
    from boinc_gahp.workflows.snakemake.executor import Executor
    from boinc_gahp.workflows.snakemake.options import ExecutorSettings
    from boinc_gahp.workflows.snakemake.rule_jobs import RuleJob

    class Workflow(Executor):
        """The executor without Snakemake."""

        def __init__(self, project):
            self._project = project
            self._settings = ExecutorSettings(app="docker", follow_links=follow_links)
            self._made = {"b": []}

        def envvars(self):
            return {}

        def _report(self, _sent, why):
            raise StagingError(why)

    job = RuleJob(
        *("count", "wc data", "x", ("data", *inputs), ("out",), (), frozenset(), 1),
        *(None, None, None),
    )
    with nowhere() as project:
        Workflow(project)._send("b", [SimpleNamespace(job=job, place=None)])


ROADS = pytest.mark.parametrize("sent", [by_command, by_function, by_htcondor, by_snakemake])


def reached(sent, checkout, *inputs, **how):
    """Send the directory ``data``; the roads to a project end there, since nothing answers."""
    try:
        return sent(checkout, *inputs, **how)
    except TransportError:
        return None


def refused(sent, checkout, *inputs, **how):
    with pytest.raises((AdRefused, BadRequest, StagingError)) as raised:
        sent(checkout, *inputs, **how)
    return str(raised.value)


def check_leads_away(look_at, path):
    with pytest.raises(StagingError, match=r"leads by a symbolic link to .* put a copy in its pl"):
        look_at(str(path))


def test_a_link_to_a_secret_is_no_input_of_any_job(checkout, secret):
    link = checkout / "point.csv"
    link.symlink_to(secret)
    check_leads_away(stat_input, link)
    check_leads_away(lambda path: FileFinder().in_words([path]), link)
    beside = checkout / "beside.csv"
    beside.write_text("1")
    check_leads_away(lambda path: Digests(None).of([str(beside), path]), link)
    # Who names the secret itself wants it.
    assert stat_input(str(secret)).st_size


@pytest.mark.parametrize("name", ["id_rsa", ".netrc", ".ssh/config"])
def test_a_link_with_the_name_of_a_secret_is_none_either(checkout, secret, name):
    # Such as a pattern finds: --each 'data/*'
    link = checkout / "data" / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(secret)
    check_leads_away(stat_input, link)


def test_a_file_behind_a_link_to_a_directory_of_secrets_is_no_input(checkout, secret):
    (checkout / "set").symlink_to(secret.parent)
    (secret.parent / "id_rsa").write_text("secret")
    for name in (secret.name, "id_rsa"):
        check_leads_away(stat_input, checkout / "set" / name)
    check_leads_away(walk, checkout / "set")


@ROADS
@pytest.mark.parametrize("follow_links", [False, True])
@pytest.mark.parametrize("to", ["the file", "its directory"])
def test_a_directory_with_a_link_to_a_secret_is_not_sent(checkout, secret, sent, follow_links, to):
    (checkout / "data/deep/point.csv").symlink_to(secret if to == "the file" else secret.parent)
    told = refused(sent, checkout, follow_links=follow_links)
    assert "point.csv' leads by a symbolic link to" in told
    assert str(secret.parent) in told


@ROADS
@pytest.mark.parametrize("to", ["", ".config", ".condor"])
def test_a_link_to_what_holds_secrets_is_not_followed_to_them(checkout, secret, sent, to):
    home = checkout.parent / "home"
    (home / to).mkdir(exist_ok=True)
    (home / to / ".netrc").write_text("secret")
    (checkout / "data/point").symlink_to(home / to)
    told = refused(sent, checkout, follow_links=True)
    assert "looks as if it held secrets" in told
    assert "/data/point/" in told


@ROADS
@pytest.mark.parametrize(
    "target", ["/etc", "/etc/passwd", "/", "../../set", "{checkout}/../set", "deep/../../set"]
)
def test_links_that_lead_out_of_a_directory_are_followed_if_the_user_says_so(
    checkout, sent, target
):
    (checkout.parent / "set").write_text("data")
    (checkout / "set").write_text("data")
    (checkout / "data/x").symlink_to(target.format(checkout=checkout))
    told = refused(sent, checkout)
    assert "data/x' is a symbolic link that leads out of the directory" in told
    assert "--follow-links" in told
    assert "+BoincFollowLinks = true" in told
    if target.endswith("set"):
        assert reached(sent, checkout, follow_links=True) in {None, 2}


@ROADS
def test_links_that_stay_in_a_directory_are_as_they_were(checkout, sent):
    (checkout / "data/b.csv").symlink_to("a.csv")
    (checkout / "data/deep/c.csv").symlink_to("../a.csv")
    (checkout / "data/deep/d.csv").symlink_to(checkout / "data/a.csv")
    assert reached(sent, checkout) in {None, 3}


@ROADS
def test_a_link_that_is_named_itself_is_followed(checkout, sent):
    (checkout / "data").rename(checkout.parent / "set")
    (checkout / "data").symlink_to("../set")
    assert reached(sent, checkout) in {None, 1}


@ROADS
@pytest.mark.parametrize("name", [".netrc", "deep/id_rsa", "deep/.docker", "deep/boinc_gahp.toml"])
def test_a_secret_in_a_directory_is_sent_only_if_it_is_named_itself(checkout, sent, name):
    path = checkout / "data" / name
    if name.endswith(".docker"):
        path.mkdir()
        (path / "config.json").write_text("secret")
    else:
        path.write_text("secret")
    told = refused(sent, checkout)
    assert f"/data/{name}' looks as if it held secrets" in told
    assert "name it as an input of its own" in told
    assert reached(sent, checkout, f"data/{name}") in {None, 2}


def test_a_word_that_names_a_secret_is_refused_unless_it_is_an_input_too(checkout):
    (checkout / "data/.netrc").write_text("secret")
    path = str(checkout / "data/.netrc")
    with pytest.raises(BadRequest, match=r'a word of the command names "data/\.netrc|looks as if'):
        FileFinder().in_words(["data/.netrc"])
    assert FileFinder().in_words(["data/.netrc"], named={path})[1]


def test_a_shell_command_of_snakemake_sends_no_secrets_that_the_rule_does_not_name(checkout):
    common = pytest.importorskip("snakemake_interface_common.exceptions")
    from boinc_gahp.workflows.snakemake.rule_jobs import _files_in

    (checkout / ".netrc").write_text("secret")
    with pytest.raises(common.WorkflowError, match="looks as if it held secrets"):
        list(_files_in("wc data/a.csv .netrc", ()))
    assert list(_files_in("wc data/a.csv .netrc", [".netrc"])) == ["data/a.csv", ".netrc"]


def test_a_link_that_is_turned_after_the_submit_changes_the_directory(checkout):
    one, other = checkout / "one", checkout / "other"
    for each in (one, other):
        each.write_text("data")
        os.utime(each, (1, 1))
    link = checkout / "data/x"
    link.symlink_to(one)
    before = look(str(checkout / "data")).stamp
    link.unlink()
    link.symlink_to(other)
    (checkout / "again").symlink_to("data")
    assert look(str(checkout / "again")).stamp != before


def test_what_only_sounds_like_a_secret_is_none(tmp_path):
    for name in ("chromium/a.py", "gcloud", "keys.csv", "history"):
        assert not may_be_secret(str(tmp_path / name))


def test_variables_are_known_by_the_shape_of_their_names():
    names = ["MYSQL_PWD", "DB_PASS", "PASSPHRASE", "DATABASE_URL", "AWS_CREDENTIALS", "SENTRY_DSN"]
    assert secret_names([*names, "PWD", "OLDPWD", "COMPASS", "PASSES", "PATH"]) == names
