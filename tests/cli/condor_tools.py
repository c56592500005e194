"""HTCondor's tools, which small programs stand in for, and what ``check`` says of it then."""

from pathlib import Path

from boinc_gahp.cli.check.htcondor_checks import check_htcondor
from boinc_gahp.config.layers import load

ROUTE = """\
REQUIREMENTS (JobUniverse == 5) && (WantBoinc =?= true || BoincApp isnt undefined)
UNIVERSE Grid
SET GridResource "batch boinc"
MaxJobs = 20000
EVALSET TransferOutputRemaps SavedOutputRemaps
COPY /^Boinc(.+)/ remote_Boinc\\1
"""
TRANSFORM = "REQUIREMENTS BoincApp isnt undefined\nCOPY TransferOutputRemaps SavedOutputRemaps\n"
ROUTER = {
    "DAEMON_LIST": "MASTER, SCHEDD JOB_ROUTER",
    "JOB_ROUTER_ROUTE_NAMES": "Other Boinc",
    "JOB_ROUTER_ROUTE_Other": 'SET GridResource "condor a b"',
    "JOB_ROUTER_ROUTE_Boinc": ROUTE,
    "JOB_ROUTER_SOURCE_JOB_CONSTRAINT": "true",
    "JOB_TRANSFORM_NAMES": "Boinc",
    "JOB_TRANSFORM_Boinc": TRANSFORM,
}


class Condor:
    """An HTCondor's tools on the PATH: what they print is in files."""

    def __init__(self, bin_):
        self._bin = bin_
        self._values = bin_ / "values"
        self._values.mkdir(parents=True)
        self.program(
            "condor_config_val",
            f"""cd {self._values}
            if [ "$1" = -dump ]; then
                ls | sed -n "s/\\($2.*\\)/\\1 = .../p"
                exit
            fi
            if [ "$1" = -subsystem ]; then
                name=$4
                [ ! -e "$2.$name" ] || name=$2.$name
                [ -e "$name" ] || {{ echo " # at: <Default>"; exit; }}
                printf '%s = ' "$name"; cat "$name"
                echo " # at: $(cat "../places/$name" || echo '/etc/condor/condor_config, line 1')"
                exit
            fi
            cat "$1" 2>/dev/null || {{ echo "Not defined: $1" >&2; exit 1; }}""",
        )

    def last_set(self, name, value, place):
        self.set(**{name: value})
        places = self._bin / "places"
        places.mkdir(exist_ok=True)
        (places / name).write_text(place + "\n")

    def set(self, **values):
        for name, value in values.items():
            if value is None:
                (self._values / name).unlink()
            else:
                (self._values / name).write_text(value + "\n")

    def version(self, version):
        printed = f"$CondorVersion: {version} 2026-07-12 PackageID: {version}-1 $"
        self.program("condor_version", f"cat <<'end'\n{printed}\n$CondorPlatform: x $\nend")

    def accepts(self, *routes):
        shown = "".join(f'Route 1\nName         : "{name}"\n' for name in routes)
        self.program("condor_job_router_info", f"cat <<'end'\n{shown}end")

    def program(self, name, script):
        program = self._bin / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)


def htcondor(topic="HTCondor"):
    """Return level and text of what is said of HTCondor, or of its Job Router."""
    points = check_htcondor(load(None, {}), Path("/opt/here/boinc_gahp"), None)
    said = [(point.level.value, point.shown) for point in points]
    return [(level, text) for level, text in said if text.startswith(f"{topic}:")]


def job_router():
    return htcondor("Job Router")
