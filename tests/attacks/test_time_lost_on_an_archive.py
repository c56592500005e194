"""A volunteer wants a submit node to spend its time on the headers of an archive."""

import tarfile

import pytest

from boinc_gahp.fetch import _tar_archive
from tests.fetch.archives import END, check_refused, extended, header, opened


def test_very_many_records_of_extended_headers_are_refused(monkeypatch):
    monkeypatch.setattr(_tar_archive, "_LEAST", 20_000)
    tiny = extended(*[b"5 a=\n"] * 4_000)
    archive = b"".join(tiny + header(str(number)) for number in range(6)) + END
    check_refused("extended headers are too long", archive)


@pytest.mark.parametrize("name", ["./", "d/", "././"])
def test_a_directory_that_comes_again_and_again_is_refused(name):
    directory = header(name, type=tarfile.DIRTYPE)
    check_refused("more than 100 members", directory * 102 + END)
    with opened(directory * 100 + END) as archive:
        assert archive.files == ()
