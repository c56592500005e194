"""A submit node's directories, for tests of settings."""

import os

import pytest

from boinc_gahp.config import layers, places
from boinc_gahp.errors import ConfigError

SECRET = "3f9d0c2b77aa41e5"


class Node:
    """A submit node's directories, with this process's home in one of them."""

    def __init__(self, base):
        self.admin = base / "etc/boinc_gahp/boinc_gahp.toml"
        self.site = base / "xdg/boinc_gahp/boinc_gahp.toml"
        self.user = base / "home/.config/boinc_gahp/boinc_gahp.toml"
        self.other = base / "other/mine.toml"
        self.home = base / "home"
        self.work = base / "work"

    def load(self, named=None):
        """Return the settings, with the file that an option names."""
        return layers.load(named and str(named), {})

    def write(self, path, text, mode=0o600):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path


@pytest.fixture
def node(tmp_path, monkeypatch):
    node = Node(tmp_path)
    node.home.mkdir()
    node.work.mkdir()
    for name in list(os.environ):
        if name.startswith("XDG_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(node.home))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "xdg"))
    monkeypatch.chdir(node.work)
    # The one thing that a test cannot make for itself is /etc.
    monkeypatch.setattr(places, "ADMIN_DIR", node.admin.parent)
    return node


def error_of(load):
    with pytest.raises(ConfigError) as caught:
        load()
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def revealed(project):
    return None if project.authenticator is None else project.authenticator.reveal()
