"""A daemon process over stand-ins: ``python -m tests.daemon.serve_stand_in [LIMIT=N] [notes=P]``.

A job named ``temporary PATH`` is fetched into a temporary file beside PATH, and never done. A batch
named ``executor`` is retired by a thread of an executor, and never done. What the service of
HTCondor's jobs was given and told, and that it was closed, is appended to the file P; where that
ends in ``hang``, the service closes only after an hour.
"""

import hashlib
import sys
from pathlib import Path

from boinc_gahp.daemon.main import serve


def settings():
    """Load the settings, after the banner; also have stand-ins opened from then on."""
    from boinc_gahp.fetch import context
    from boinc_gahp.htcondor import service
    from tests.daemon.stand_in import forward, limited

    forward(setattr)
    context.Opener = opener()
    service.Service = lambda *_: new_service()
    limits = {}
    for argument in sys.argv[1:]:
        name, value = argument.split("=")
        if name != "notes":
            limits[name] = int(value)
    return limited(**limits)


def opener():
    from concurrent.futures import ThreadPoolExecutor

    from boinc_gahp.fetch.temporary import registry
    from tests.daemon.stand_in import StandIn

    class Context(StandIn):
        def retire_batch(self, name):
            if name == "executor":
                ThreadPoolExecutor().submit(self.go.wait, 60).result()
            super().retire_batch(name)

        def fetch_output(self, request):
            if request.job_name.startswith("temporary "):
                kept = registry.file(Path(request.job_name.removeprefix("temporary ")))
                self.go.wait(3600)
                del kept
            return super().fetch_output(request)

    return Context


def new_service():
    from tests.daemon.stand_in import StandInService

    paths = [Path(word.removeprefix("notes=")) for word in sys.argv if word.startswith("notes=")]

    def note(text):
        for path in paths:
            with path.open("a") as file:
                file.write(f"{text}\n")

    class Service(StandInService):
        def submit(self, ad):
            digest = hashlib.sha256(ad.encode("utf-8", "surrogateescape")).hexdigest()
            note(f"submit {len(ad)} {digest}")
            return super().submit(ad)

        def end_reported(self, job_id):
            super().end_reported(job_id)
            note(f"told {job_id}")

        def close(self):
            if any(path.name.endswith("hang") for path in paths):
                self.go.wait(3600)
            note("closed")

    return Service()


if __name__ == "__main__":
    serve(settings)
