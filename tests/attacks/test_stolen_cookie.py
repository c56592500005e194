"""An attacker has read a cookie of a user's, and wants to act as the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from boinc_gahp.localproject import LocalProject
from tests.localproject.visitor import Visitor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Iterator[LocalProject]:
    with LocalProject(tmp_path / "p", hosts=0) as project:
        yield project


def test_a_cookie_is_worth_nothing_after_its_user_has_signed_out(project: LocalProject) -> None:
    with (
        Visitor(project.core) as user,
        Visitor(project.core) as thief,
        Visitor(project.core) as far,
    ):
        far.sign_in()
        user.sign_in()
        thief.session.cookies.update(user.session.cookies)
        assert thief.get("submit").status_code == 200
        user.send("sign-out")
        assert thief.get("submit").status_code == 401
        assert thief.send("submit", {"app": "uppercase"}).status_code == 401
        # The user's other browser goes on.
        assert far.get("submit").status_code == 200


def test_nor_after_its_user_has_signed_in_again(project: LocalProject) -> None:
    with Visitor(project.core) as user, Visitor(project.core) as thief:
        user.sign_in()
        thief.session.cookies.update(user.session.cookies)
        user.sign_in()
        assert thief.get("submit").status_code == 401
        assert user.get("submit").status_code == 200


def test_a_cookie_is_worth_nothing_when_its_time_is_over(project: LocalProject) -> None:
    with Visitor(project.core) as user:
        user.sign_in()
        with project.core.db.write() as connection:
            connection.execute("UPDATE session SET expires = 1")
        assert user.get("submit").status_code == 401


def test_a_session_lasts_over_a_restart_and_its_end_too(tmp_path: Path) -> None:
    with LocalProject(tmp_path / "p", hosts=0) as project, Visitor(project.core) as user:
        cookies = user.sign_in().session.cookies.copy()
    with LocalProject(tmp_path / "p", hosts=0) as project, Visitor(project.core) as user:
        user.session.cookies.update(cookies)
        assert user.get("submit").status_code == 200
        user.send("sign-out")
    with LocalProject(tmp_path / "p", hosts=0) as project, Visitor(project.core) as thief:
        thief.session.cookies.update(cookies)
        assert thief.get("submit").status_code == 401
