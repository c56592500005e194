"""A volunteer wants a submit node to spend its time on the headers of an archive."""

import tarfile

import pytest

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch import _tar_archive
from tests.fetch.test_tar_archive import END, extended, header, opened


def test_very_many_records_of_extended_headers_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(_tar_archive, "_LEAST", 20_000)
    tiny = extended(*[b"5 a=\n"] * 4_000)
    path = tmp_path / "archive"
    path.write_bytes(b"".join(tiny + header(str(number)) for number in range(6)) + END)
    with pytest.raises(OutputError, match="extended headers are too long"), opened(path):
        pass


@pytest.mark.parametrize("name", ["./", "d/", "././"])
def test_a_directory_that_comes_again_and_again_is_refused(name, tmp_path):
    path = tmp_path / "archive"
    path.write_bytes(header(name, type=tarfile.DIRTYPE) * 102 + END)
    with pytest.raises(OutputError, match="more than 100 members"), opened(path):
        pass
    path.write_bytes(header(name, type=tarfile.DIRTYPE) * 100 + END)
    with opened(path, max_files=100) as archive:
        assert archive.files == ()
