"""What settings files may say, and the ones that come with the program."""

import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from boinc_gahp.config import _reading, accounts
from boinc_gahp.config.settings import ProjectSettings, Settings
from tests.config.conftest import SECRET, error_of, revealed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONF = Path(__file__).parents[2] / "conf"

WRONG = {
    "unknown-key": ("[timeouts]\nconect = 3", ["[timeouts]", "did you mean connect?"]),
    "unknown-section": ("[timeout]\nread = 3", ["[timeout]", "did you mean timeouts?"]),
    "unknown-project-key": ("[projects.x]\nurI = 3", ["[projects.x]", "uri", "url"]),
    "section-is-a-value": ("limits = 3", ["limits is 3", "[limits] is expected"]),
    "projects-is-a-list": ("projects = []", ["projects is a list"]),
    "number-is-text": ('[timeouts]\nread = "3"', ['read in [timeouts] is "3"', "a number"]),
    "number-is-true": ("[limits]\nworkers = true", ["is true", "a whole number"]),
    "fraction": ("[limits]\nworkers = 1.5", ["is 1.5", "a whole number"]),
    "zero": ("[limits]\nworkers = 0", ["is 0", "1 or greater"]),
    "negative": ("[timeouts]\nretry = -1", ["0 or greater"]),
    "infinite": ("[timeouts]\nread = inf", ["is inf", "greater than 0"]),
    "not-a-number": ("[timeouts]\nread = nan", ["is nan"]),
    "truth-is-text": ('[staging]\nmd5_cache = "yes"', ['"yes"', "true or false"]),
    "level": ('[logging]\nlevel = "loud"', ['"loud"', "debug, info, warning, error, off"]),
    "failed-jobs": (
        '[htcondor]\nfailed_jobs = "retry"',
        ['failed_jobs in [htcondor] is "retry"', "one of complete, hold"],
    ),
    "text-is-number": ("[state]\ndir = 7", ["is 7", "a text in quotes"]),
    "url-is-ftp": ('[project]\nurl = "ftp://x/"', ['"ftp://x/"', "https://boinc.example.edu"]),
    "url-has-password": ('[project]\nurl = "https://u:p@x/"', ['is "https://<login>@x/"']),
    "url-alone": ("https://x/\n", ["a second line with the authenticator", "only that line"]),
    "proxy": ('[project]\nproxy = "p:3128"', ["proxy in [project] is not right", "http://proxy"]),
    "app-is-empty": ('[project]\ncontainer_app = ""', ["name of an app is expected"]),
    "app-is-two-words": ('[project]\ncontainer_app = "a b"', ['"a b"', "one word"]),
    "image-is-empty": ('[project]\ncontainer_image = " "', ["like docker://"]),
    "image-file-is-empty": ('[project]\ncontainer_image = "rootfs:"', ["a path is expected"]),
    "secret-is-number": ("[project]\nauthenticator = 3409", ["is not right", "quotes"]),
    "secret-is-empty": ('[project]\nauthenticator = ""', ["is empty"]),
    "secret-is-two-words": (f'[project]\nauthenticator = "{SECRET} x"', ["one word"]),
    "secret-is-not-ascii": (f'[project]\nauthenticator = "{SECRET}é"', ["ASCII"]),
    "both-secrets": (
        f'[project]\nauthenticator = "{SECRET}"\nauthenticator_file = "x"',
        ["both authenticator and authenticator_file"],
    ),
    "not-toml": (f'[project]\nauthenticator = {SECRET}"', ["is not TOML", "line 2"]),
    "margin": ("[timeouts]\nsubmit = 50", ["submit_margin in [timeouts] is 60", "50"]),
    "polls": (
        "[htcondor]\npoll_shortest = 400",
        ["poll_shortest in [htcondor] is 400", "poll_longest, which is 300"],
    ),
    "no-job-in-a-batch": ("[htcondor]\nbatch_jobs = 0", ["is 0", "1 or greater"]),
    "not-utf-8": ('x = "\udcff"', ["is not UTF-8 (at byte 5)"]),
    "huge": ("#" * 1_000_001, ["larger than 1000000 bytes"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_reported_with_file_place_and_what_is_expected(node, name):
    text, expected = WRONG[name]
    path = node.write(node.user, "")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    message = error_of(node.load)
    for words in [str(path), *expected]:
        assert words.lower() in message.lower()


# The example.


def test_the_example_holds_every_setting_with_its_default():
    text = (CONF / "boinc_gahp.toml").read_text()
    document = tomllib.loads(text)
    # Settings without a default are there as comments.
    commented = tomllib.loads(
        re.sub(r"^# (?=(\w+ = |\[projects))", "", text, flags=re.MULTILINE).replace(
            'authenticator = "..."', "", 1
        )
    )
    for section, kind in _reading.sections().items():
        table = document.get(section, {})
        for key in fields(kind):
            if key.default is None:
                assert key.name in commented[section]
                assert key.name not in table
            else:
                assert table[key.name] == key.default
        assert set(table) <= {key.name for key in fields(kind)}
    for key in fields(ProjectSettings):
        if key.name not in {"url", "authenticator"}:
            assert commented["project"][key.name] == key.default or key.default is None
    assert set(commented["projects"]["lhc"]) == {"url", "authenticator_file"}
    assert '# authenticator = "..."' in text


def test_the_example_is_loaded_and_leaves_all_at_its_default(node):
    node.write(node.home / ".config/boinc_gahp/authenticator", SECRET)
    text = (CONF / "boinc_gahp.toml").read_text()
    node.write(node.admin, text, 0o644)
    forgotten = error_of(lambda: accounts.find_project(node.load(), None))
    assert forgotten.startswith("no project's URL is set")
    assert f"{node.admin}: [project] has no url" in forgotten
    node.write(node.admin, text.replace("# url = ", "url = ", 1), 0o644)
    settings = node.load()
    assert settings.problems == ()
    assert revealed(settings.project) == SECRET
    defaults = Settings()
    for section in ("timeouts", "staging", "jobs", "htcondor", "limits", "logging"):
        assert getattr(settings, section) == getattr(defaults, section)


def test_the_example_for_htcondor_leaves_a_submit_less_time_than_htcondor_gives_it():
    condor = (CONF / "10-boinc_gahp.condor9.conf").read_text()
    given_up = int(re.findall(r"^GRIDMANAGER_GAHP_CALL_TIMEOUT = (\d+)$", condor, re.M)[0])
    named = re.findall(r"submit = (\d+)", condor) + re.findall(
        rf"{given_up} of\n.*submit = (\d+)", (CONF / "boinc_gahp.toml").read_text()
    )
    assert named == [str(given_up - 30)] * 2


def test_admins_are_told_nowhere_to_restart_htcondor():
    # condor_reconfig is seen with 23.9.6 to start and end the Job Router; main_config() of
    # condor_master.V6/master.cpp is the same for it from HTCondor 9.0 to 25.12.
    for path in (*CONF.parent.glob("*.rst"), *CONF.parent.glob("docs/*.rst"), *CONF.glob("*.conf")):
        assert not re.search("condor_restart|killall", path.read_text("utf-8")), path


def test_what_adds_to_lists_of_htcondor_is_in_the_file_that_is_read_last():
    names = sorted(path.name for path in CONF.glob("*.conf"))
    assert names[-1] == "zz-boinc_gahp.router.conf"
    adding = re.compile(r"^(\w+) = \$\(\1\)", re.MULTILINE)
    last = (CONF / names[-1]).read_text()
    assert set(adding.findall(last)) == {
        "DAEMON_LIST",
        "JOB_ROUTER_ROUTE_NAMES",
        "JOB_TRANSFORM_NAMES",
    }
    # And nothing there sets anew what a site may have set.
    code = re.sub(r"@=end\n.*?^@end$", "", last, flags=re.DOTALL | re.MULTILINE)
    plain = re.findall(r"^\s*(\w+) = (?!.*\$\(\1\))", code, re.MULTILINE)
    assert plain == []
