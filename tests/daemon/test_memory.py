"""The daemon's memory."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes


def test_the_parsers_of_past_replies_do_not_pile_up():
    program = """
import gc
from boinc_gahp.daemon.main import prepare_process
from boinc_gahp.rpc import _replies
prepare_process()
for _ in range(5000):
    _replies.read([b"<ping><success>1</success></ping>"], "ping")
print(sum(type(each).__name__ == "XMLPullParser" for each in gc.get_objects()))
"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
    told = subprocess.check_output([sys.executable, "-c", program], text=True, env=environment)
    assert int(told) < 1000
