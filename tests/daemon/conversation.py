"""A conversation with an engine, over stand-ins."""

import threading
from contextlib import contextmanager

from boinc_gahp.config.settings import Settings
from boinc_gahp.daemon._engine import Engine
from tests.daemon.stand_in import SETTINGS, StandIn, StandInService, StoodIn, end
from tests.helpers import wait_for


class Conversation:
    """An engine, and all that it printed."""

    def __init__(self, load_settings, context):
        self.context = context
        self.service = StandInService()
        self.results = threading.Semaphore(0)
        self.projects = StoodIn(load_settings, context, self.service)
        self.engine = Engine(self.projects, on_result=self.results.release)

    def say(self, line):
        return self.reply(line).output.decode()

    def reply(self, line):
        return self.engine.handle(line.encode("utf-8", "surrogateescape"))

    def wait(self, number=1):
        for _ in range(number):
            assert self.results.acquire(timeout=60)

    def result(self, line):
        assert self.say(line) == "S\n"
        self.wait()
        answer = self.say("RESULTS")
        head, result = answer.split("\n", 1)
        assert head == "S 1"
        return result.removesuffix("\n")

    def close(self):
        self.context.go.set()
        self.service.go.set()
        self.projects.close()
        end(self.engine)


@contextmanager
def conversing(settings=SETTINGS):
    before = set(threading.enumerate())
    load = (lambda: settings) if isinstance(settings, Settings) else settings
    conversation = Conversation(load, StandIn())
    try:
        yield conversation
    finally:
        conversation.close()
        wait_for(lambda: set(threading.enumerate()) <= before, "all threads have ended")
