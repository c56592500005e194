"""The supplied validators: whether two results agree (``back-end.rst``, "Validator")."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boinc_gahp.localproject.backend.views import Result


def trivial(_first: Result, _second: Result) -> bool:
    """Every result that exited with 0 is as good as any other."""
    return True


def bitwise(first: Result, second: Result) -> bool:
    """The same bytes in all output files; those with ``no_validate`` are ignored.

    An optional file that was not made equals only one that was not made either.
    """
    return _contents(first) == _contents(second)


def _contents(instance: Result) -> dict[str, tuple[int, str]]:
    # The MD5s are those of the files as received, not those that hosts report.
    return {
        file.open_name: (file.nbytes, file.md5) for file in instance.files if not file.no_validate
    }
