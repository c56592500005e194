"""The texts of input files, as people write them: the other way round than the program reads."""

from boinc_gahp.api.rows.texts import path_of, read_file
from boinc_gahp.errors import BadRequest
from boinc_gahp.submit.types import InlineFile, LocalFile, RemoteFile, StagedFile


def written(file):
    """Return a text that stands for ``file``, the plainest that there is."""
    if isinstance(file, StagedFile):
        return f"staged:{file.physical_name}"
    if isinstance(file, InlineFile):
        return f"inline:{file.text}"
    if isinstance(file, RemoteFile):
        return f"remote:{file.url},{file.nbytes},{file.md5}"
    path = path_of(file)
    try:
        is_plain = read_file(path) == LocalFile(path)
    except BadRequest:
        is_plain = False
    return path if is_plain else f"file:{path}"
