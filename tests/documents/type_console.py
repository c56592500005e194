"""Types a conversation of the documentation on a terminal; prints what came, ends as it went.

The file has ``$ COMMAND`` and then lines that begin with the console's prompt.
"""

import sys
from pathlib import Path

import pexpect

PROMPT = "boinc_gahp> "
_DEADLINE = 60.0


def main():
    """Have the conversation of the file that is named; return the exit status."""
    first, *lines = Path(sys.argv[1]).read_text("utf-8").splitlines()
    command = first.removeprefix("$ ")
    child = pexpect.spawn("bash", ["-c", command], encoding="utf-8", timeout=_DEADLINE)
    child.logfile_read = sys.stdout
    child.expect(PROMPT)
    for line in lines:
        typed = line.removeprefix(PROMPT)
        child.sendline(typed)
        command, number, *_ = typed.split()
        # Its result has come; what went wrong begins with other words.
        child.expect(rf"{command} {number}:\S* (ok|done|\d)")
    child.sendline("QUIT")
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus or 0


if __name__ == "__main__":
    sys.exit(main())
