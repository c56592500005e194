"""Runs calls as a volunteer's computer does: the runner, in a directory of its own."""

import json
import sys

from boinc_gahp.functions.payload import PROGRAM, pack_call, pack_function, shared_files, words
from boinc_gahp.functions.runner import FORMAT, RESULT, RETURNED, Encoder
from boinc_gahp.functions.values import read_result
from tests.helpers import ran

CALL = "c0ffee"


class Place:
    """A directory in which a call runs."""

    def __init__(self, directory):
        self.directory = directory
        self.function = None
        self.call = None
        self.stderr = ""

    def send(self, function, *args, **kwargs):
        self.function = pack_function(function)
        self.call = pack_call(self.function, args, kwargs)
        files = {**shared_files(), self.function.file_name: self.function.content}
        if self.call.is_file:
            files[self.call.file_name] = self.call.content
        for name, content in files.items():
            (self.directory / name).write_bytes(content)

    def run(self, python=sys.executable):
        done = ran(python, PROGRAM, *words(self.function, self.call), cwd=self.directory)
        self.stderr = done.stderr
        return done.returncode

    def value(self, function, *args, **where):
        """Call a function; return its value."""
        self.send(function, *args)
        assert self.run(**where) == 0, self.stderr
        value, raised = read_result(self.directory / RETURNED, self.call.key)
        assert raised is None
        return value

    def raised(self, function, *args, **where):
        """Call a function; return what it raises."""
        self.send(function, *args)
        assert self.run(**where) == 1
        value, raised = read_result(self.directory / RETURNED, self.call.key)
        assert raised is not None, value
        return raised


def there_and_back(value, directory):
    """Encode a value as the runner does, and read it."""
    (directory / RETURNED).mkdir(exist_ok=True)
    encoded = Encoder(directory / RETURNED).encode(value)
    found, raised = forged(directory, {"value": encoded})
    assert raised is None
    return found


def forged(directory, outcome, files=None, **head):
    """Read a result that a host made up, and files with it."""
    document = {"format": FORMAT, "call": CALL, **outcome, **head}
    return forged_bytes(directory, json.dumps(document).encode(), files)


def forged_bytes(directory, content, files=None):
    (directory / RETURNED).mkdir(exist_ok=True)
    for name, data in {RESULT: content, **(files or {})}.items():
        (directory / RETURNED / name).write_bytes(data)
    return read_result(directory / RETURNED, CALL)
