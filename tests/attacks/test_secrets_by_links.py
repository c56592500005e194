"""Files of a stranger, such as a checkout, want to have a user's secrets sent along."""

import pytest

from boinc_gahp.api._program_files import FileFinder
from boinc_gahp.containers.rules import may_be_secret, secret_names
from boinc_gahp.errors import StagingError
from boinc_gahp.submit.digests import stat_input
from boinc_gahp.submit.trees import walk


@pytest.fixture(params=[".ssh/id_rsa", ".config/gcloud/credentials.db", ".condor/tokens.d/pool"])
def secret(request, tmp_path):
    path = tmp_path / "home" / request.param
    path.parent.mkdir(parents=True)
    path.write_text("secret")
    return path


@pytest.fixture
def checkout(tmp_path):
    path = tmp_path / "checkout"
    (path / "data/deep").mkdir(parents=True)
    return path


def test_a_link_to_a_secret_is_no_input_of_any_job(checkout, secret):
    link = checkout / "point.csv"
    link.symlink_to(secret)
    with pytest.raises(StagingError, match=r"is a symbolic link to .* put a copy in its place"):
        stat_input(str(link))
    with pytest.raises(StagingError, match="put a copy in its place"):
        FileFinder().in_words([str(link)])
    # Who names the secret itself wants it.
    assert stat_input(str(secret)).st_size


@pytest.mark.parametrize("to", ["the file", "its directory"])
def test_a_directory_with_a_link_to_a_secret_is_no_input_of_any_job(checkout, secret, to):
    (checkout / "data/deep/point.csv").symlink_to(secret if to == "the file" else secret.parent)
    with pytest.raises(StagingError, match=r"point\.csv' is a symbolic link to"):
        walk(str(checkout))


def test_other_links_are_followed(checkout, tmp_path):
    (tmp_path / "set").write_text("data")
    (checkout / "data/set").symlink_to(tmp_path / "set")
    assert [entry.kind for entry in walk(str(checkout))].count("file") == 1


def test_what_only_sounds_like_a_secret_is_none(tmp_path):
    for name in ("chromium/a.py", "gcloud", "keys.csv", "history"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        assert not may_be_secret(str(path))


def test_variables_are_known_by_the_shape_of_their_names():
    names = ["MYSQL_PWD", "DB_PASS", "PASSPHRASE", "DATABASE_URL", "AWS_CREDENTIALS", "SENTRY_DSN"]
    assert secret_names([*names, "PWD", "OLDPWD", "COMPASS", "PASSES", "PATH"]) == names
