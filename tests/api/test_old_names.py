"""Names of 0.1, which work for one more release, and say so."""

from __future__ import annotations

import importlib
import sys

import pytest

import boinc_gahp
from boinc_gahp import api


def test_the_old_name_of_the_python_api_has_all_of_its_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "boinc_gahp.remote", raising=False)
    with pytest.warns(
        DeprecationWarning, match=r"boinc_gahp\.remote is called boinc_gahp\.api now"
    ):
        old = importlib.import_module("boinc_gahp.remote")
    assert all(getattr(old, name) is getattr(api, name) for name in api.__all__)
    assert old.Project is boinc_gahp.Project
