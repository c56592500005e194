"""``boinc_gahp apps``: the project's apps, in this process."""

import re

import pytest

from tests.cli.conftest import InProcess, write_settings
from tests.rpc import scripted
from tests.rpc.canned import inside
from tests.rpc.scripted import AUTHENTICATOR, Scripted, ok


@pytest.fixture
def apps(settings, capsys, monkeypatch):
    monkeypatch.delenv("BOINC_GAHP_CONFIG", raising=False)
    return InProcess(capsys, "apps")


@pytest.fixture
def server(settings):
    """A web server that the settings name."""
    with Scripted() as server:
        write_settings(settings, server.url, AUTHENTICATOR, "[timeouts]\nretry = 0\n")
        yield server


def test_all_are_listed_with_versions(apps):
    out = apps.prints()
    rows = {line.split("  ")[0]: line for line in out.splitlines()}
    assert next(iter(rows)) == "app"
    assert "two inputs, three outputs, the last optional" in rows["multi"]
    assert "1.00 " in rows["multi"]
    assert out.endswith("More about an app: boinc_gahp apps NAME\n")


def test_the_list_has_each_platform_with_its_newest_version(apps, server):
    versions = "".join(
        f"<version><platform_short>{platform}</platform_short><version_num>{number}</version_num>"
        f"<plan_class>{plan}</plan_class></version>"
        for platform, number, plan in [
            ("windows_x86_64", 120, ""),
            ("x86_64-pc-linux-gnu", 98, "sse2"),
            ("x86_64-pc-linux-gnu", 102, "avx"),
        ]
    )
    listed = "".join(
        f"<application><id>{number}</id><name>a{number}</name><user_friendly_name>b"
        f"</user_friendly_name>{of}</application>"
        for number, of in enumerate((versions, ""))
    )
    server.answers.append(ok(inside("app_versions", listed)))
    assert [line.split() for line in apps.prints().splitlines()[1:-1]] == [
        ["a0", "b", "1.20", "windows_x86_64"],
        ["1.02", "x86_64-pc-linux-gnu", "(avx,", "sse2)"],
        ["a1", "b", "none"],
    ]


def test_one_is_shown_with_all_that_a_submit_needs(apps):
    out = apps.prints("multi")
    assert out.startswith("multi: two inputs, three outputs, the last optional\n")
    for said in (
        "you may submit them",
        "inputs:    in0, in1\n",
        "outputs:   out0, out1, out2 (optional)\n",
        "24 h until the deadline, 50 MB of memory",
        "boinc_gahp batch submit multi --input in0=FILE --input in1=FILE\n",
    ):
        assert said in out


def test_a_name_that_is_none_gets_the_nearest(apps):
    assert "has no app 'uppercaes'; did you mean uppercase?" in apps.refuses("uppercaes")


def test_an_account_without_the_right_is_told_so(apps, project, settings):
    settings.with_name("key").write_text(project.add_user("only multi", apps=["multi"]))
    out = apps.prints("uppercase")
    assert "you may not submit them" in out
    assert "Ask the admin of" in out
    assert "boinc_gahp batch submit" not in out
    # The list is public.
    settings.with_name("key").write_text(project.add_user("nobody", access=False))
    assert "uppercase" in apps.prints()
    settings.with_name("key").write_text("0" * 32)
    assert "the account key is wrong: run boinc_gahp login" in apps.refuses()


def test_an_app_for_containers_brings_no_templates(apps, project):
    project.add_container_app("docker")
    out = apps.prints("docker")
    assert "each job brings its own" in out
    assert re.search(r"1\.00  .*docker", out)


def test_json_has_everything(apps, project):
    document = apps.json("multi")
    assert (document["project"], document["is_complete"]) == (project.url, True)
    (app,) = document["apps"]
    assert (app["name"], app["may_submit"], app["inputs"]) == ("multi", True, ["in0", "in1"])
    assert app["outputs"][2] == {"name": "out2", "optional": True}
    assert app["versions"][0]["version"] == 100
    assert apps.json()["apps"][0]["may_submit"] is None


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (ok(b"<html><title>Log in</title></html>"), "is not for programs"),
        (scripted.status(404), "HTTP 404"),
        (ok(inside("app_versions", "<application><id>x</id></application>")), "not for programs"),
        (ok(b'<?xml version="1.0"?>\n<app_versions>\n<application>'), "not for programs"),
    ],
    ids=["login", "404", "odd", "cut"],
)
def test_a_project_that_does_not_list_its_apps_is_told_with_why(apps, server, page, why):
    server.answers.append(page)
    out = apps.prints()
    assert "does not tell which apps it has" in out
    assert why in out
    document = apps.json()
    assert (document["is_complete"], document["apps"]) == (False, [])


def test_words_of_a_project_do_not_move_the_cursor(apps, server):
    harm = "&#27;[2J" + "\N{RIGHT-TO-LEFT OVERRIDE}"
    app = (
        f"<application><id>1</id><name>a{harm}</name><user_friendly_name>b{harm}"
        f"</user_friendly_name><version><platform_short>c{harm}</platform_short>"
        f"<version_num>1</version_num><plan_class>d{harm}</plan_class></version></application>"
    )
    error = (
        f"<error><error_num>-1</error_num><error_msg>no submit access {harm}</error_msg></error>"
    )
    pages = [("app_versions", app)] * 2 + [("get_templates", error)]
    server.answers += [ok(inside(*page)) for page in pages]
    shown = apps()[1] + apps("a\x1b[2J")[1]
    assert "\x1b" not in shown
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in shown
