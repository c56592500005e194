"""Directories opened part by part, as the kernel would go there."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boinc_gahp.files import make_private_directory, open_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PARTS = ["a", "b", "c", "..", "."]
WAYS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("/".join)
#: What there is in a tree: directories, and links with what they lead to; an absolute one begins
#: at the tree's top.
LINKS = st.dictionaries(WAYS, st.tuples(st.booleans(), WAYS), max_size=6)


@given(directories=st.lists(WAYS, max_size=6), links=LINKS, way=WAYS, has_file=st.booleans())
def test_a_path_leads_where_it_leads_the_kernel(
    directories: list[str],
    links: dict[str, tuple[bool, str]],
    way: str,
    has_file: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("tree") / "x" / "x" / "x" / "x" / "x"
    root.mkdir(parents=True)
    try:
        for directory in directories:
            (root / directory).mkdir(parents=True, exist_ok=True)
        if has_file and not (root / "c").exists():
            (root / "c").touch()
        for name, (absolute, target) in links.items():
            try:
                (root / name).symlink_to(f"{root}/{target}" if absolute else target)
            except OSError:
                continue
        assert led(lambda: open_directory(root / way)) == led(
            lambda: os.open(f"{root}/{way}", os.O_RDONLY | os.O_DIRECTORY)
        )
    finally:
        shutil.rmtree(root.parents[4])


def led(way: Callable[[], int]) -> tuple[int, int] | str | None:
    """Return which directory a descriptor is of, or the system's name for why there is none."""
    try:
        descriptor = way()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    try:
        status = os.fstat(descriptor)
        return status.st_dev, status.st_ino
    finally:
        os.close(descriptor)


def test_what_a_link_to_nowhere_leads_to_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "not mounted")
    with pytest.raises(FileNotFoundError):
        make_private_directory(tmp_path / "link" / "state")
    assert not (tmp_path / "not mounted").exists()


def test_what_is_made_is_the_users_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private_directory(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in sorted(tmp_path.rglob("*"))] == [0o700, 0o700]
