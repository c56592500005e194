from pathlib import Path

from boinc_gahp.cli.files import run_parser
from tests.cli.conftest import InProcess


def test_it_tells_where_the_files_are_and_its_help_has_each(capsys):
    directory = Path(InProcess(capsys, "files").prints().strip())
    names = {path.name for path in directory.iterdir()}
    assert {"boinc_gahp.toml", "submit"} < names
    told = run_parser().format_help()
    assert [name for name in names if f"\n  {name} " not in told] == []
