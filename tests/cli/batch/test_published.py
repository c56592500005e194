"""What people are told of input files that a web server of theirs hands out."""

import pytest

from tests.helpers import served


@pytest.fixture
def public(site, here, tmp_path, monkeypatch):
    """A directory that is handed out, and settings that name it; its address."""
    directory = tmp_path / "public"
    directory.mkdir()
    (here / "large.txt").write_bytes(str(tmp_path).encode().ljust(3_000_000, b"."))
    with served(directory) as url:
        config = site.config.with_name("public.toml")
        more = f"publish_directory = '{directory}'\npublish_url = '{url}'\n"
        config.write_text(site.config.read_text() + more)
        monkeypatch.setenv("BOINC_GAHP_CONFIG", str(config))
        yield url


def test_what_is_public_is_named_before_and_after_it_is(batch, public, tag, capsys):
    words = ("submit", "uppercase", "--name", tag, "--input", "in=large.txt")
    told = batch.prints(*words, "--dry-run")
    assert f"1 file would be public as long as a job needs it, at {public}" in told
    [file] = batch.json(*words, "--dry-run")["files"]
    assert (file["url"].startswith(public), file["present"]) == (True, False)
    assert "Public as long as a job needs them (3 MB): large.txt\n" in batch.prints(*words)
    assert f"Public at {public}: 1 file (3 MB).\n" in batch.prints("list", "--files")
    [project] = batch.json("list")["projects"]
    assert (project["published_files"], project["published_bytes"]) == (1, 3_000_000)
    batch.prints("retire", tag)
    assert "Public at" not in batch.prints("list", "--files")
