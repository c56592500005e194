"""What is public stays, or is announced; docs/reference/public.rst has the rules."""

import os
import re

from boinc_gahp_docs.public import GONE, LIST, ROOT, names

#: The changes since the last release.
CHANGES = re.split(r"\n\d\S+ \(.*\)\n-+\n", (ROOT / "CHANGES.rst").read_text("utf-8"))[1]


def test_the_list_has_all_that_is_public():
    there, listed = names(), LIST.read_text("utf-8").splitlines()
    known = {line.removeprefix(GONE) for line in listed}
    wanted = sorted(GONE + name for name in known - set(there)) + there
    if os.environ.get("UPDATE_PUBLIC"):
        LIST.write_text("".join(f"{line}\n" for line in wanted), "utf-8")
    else:
        how = "; UPDATE_PUBLIC=1 .venv/bin/pytest tests/test_public.py mends docs/reference"
        assert set(listed) ^ set(wanted) == set(), how


def test_the_changes_name_what_is_no_longer_public():
    gone = [line for line in LIST.read_text("utf-8").splitlines() if line.startswith(GONE)]
    # "python boinc_gahp.Batch.wait(timeout)": timeout.
    words = {line: re.findall(r"[^ .:()]+", line)[-1] for line in gone}
    assert [line for line, word in words.items() if word not in CHANGES] == []
