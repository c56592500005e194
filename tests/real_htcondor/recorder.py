"""Runs boinc_gahp for HTCondor, and records when it answers.

HTCondor starts it in the chroot instead of boinc_gahp (``scripts/scale-htcondor``). When boinc_gahp
says that it has results, it asks for them at once and keeps them for HTCondor, which may be busy
for seconds, so that only boinc_gahp's time is counted. For each answer there is a line in
``~/gahp.times.PID``: ``return`` or ``result``, the command, when the request was sent (seconds
since 1970), and seconds until the answer.
"""

import os
import select
import subprocess
import time
from collections import deque
from pathlib import Path

PROGRAM = "/opt/boinc_gahp/bin/boinc_gahp"
RECORD = "gahp.times"
PREFIX = b"GAHP:"


class Recorder:
    """What is between HTCondor and the program.

    Args:
        to_program: where requests go.
        to_condor: where answers go.
        record: the times.
    """

    def __init__(self, to_program, to_condor, record):
        self._to_program = to_program
        self._to_condor = to_condor
        self._record = record.open("w", encoding="ascii")
        self._greeted = False
        self._prefix = b""
        #: Requests without a Return Line: the command, the request id, when it was sent.
        self._unanswered = deque()
        #: Requests without a Result Line, by id.
        self._sent = {}
        self._expected = 0
        self._results = []
        self._told = False

    def request(self, line):
        """Pass a Request Line on, or answer it."""
        words = line.split(b" ", 2)
        command = words[0].decode("ascii").upper()
        if command == "RESULTS":
            results, self._results = self._results, []
            self._told = False
            self._tell(b"S %d" % len(results), *results)
            return
        self._ask(line, command, words[1] if len(words) > 1 else b"")

    def answer(self, line):
        """Pass a line of the program's on, or keep it."""
        line = line.removeprefix(self._prefix)
        if not self._greeted:
            self._greeted = True
            self._tell(line)
        elif self._expected:
            self._result(line)
        elif line == b"R":
            self._ask(b"RESULTS", "RESULTS", b"")
        else:
            self._return(line)

    def save(self):
        """Write the times that there are."""
        self._record.flush()

    def _ask(self, line, command, request_id):
        now = time.time()
        self._unanswered.append((command, request_id, now))
        if command.startswith("BLAH_"):
            self._sent[request_id] = command, now
        _write(self._to_program, line + b"\r\n")

    def _return(self, line):
        command, request_id, sent = self._unanswered.popleft()
        self._note("return", command, sent)
        if command == "RESULTS":
            self._expected = int(line.split(b" ")[1])
            return
        if not line.startswith(b"S"):
            self._sent.pop(request_id, None)
        self._tell(line)
        if command == "RESPONSE_PREFIX":
            self._prefix = PREFIX

    def _result(self, line):
        self._expected -= 1
        self._results.append(line)
        command, sent = self._sent.pop(line.split(b" ", 1)[0])
        self._note("result", command, sent)
        if not self._expected and not self._told:
            self._told = True
            self._tell(b"R")

    def _note(self, what, command, sent):
        self._record.write(f"{what} {command} {sent:.6f} {time.time() - sent:.6f}\n")

    def _tell(self, *lines):
        _write(self._to_condor, b"".join(self._prefix + line + b"\r\n" for line in lines))


def main():
    """Run the program until HTCondor closes the pipe or the program ends."""
    with subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin
        assert program.stdout
        recorder = Recorder(program.stdin.fileno(), 1, Path.home() / f"{RECORD}.{os.getpid()}")
        ends = {0: recorder.request, program.stdout.fileno(): recorder.answer}
        begun = dict.fromkeys(ends, b"")
        while True:
            ready, _, _ = select.select(list(ends), [], [], 0.5)
            if not ready:
                recorder.save()
            for end in ready:
                data = os.read(end, 1 << 20)
                if not data:
                    recorder.save()
                    program.terminate()
                    return
                *lines, begun[end] = (begun[end] + data).split(b"\n")
                for line in lines:
                    ends[end](line.removesuffix(b"\r"))


def _write(end, data):
    view = memoryview(data)
    while view:
        view = view[os.write(end, view) :]


if __name__ == "__main__":
    main()
