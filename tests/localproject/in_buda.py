"""A BUDA app for tests: it sorts the lines of ``in``, and notes its arguments."""

from boinc_gahp.localproject.commands.apps import add_app
from tests.containers_engine import IMAGE

NAME = "sorter"
APP = f"buda:{NAME}"

_FILES = {
    "recipe": f'FROM {IMAGE}\nWORKDIR /app\nENTRYPOINT []\nCMD ["sh","./main.sh"]\n',
    # One image for all jobs: one a job can fail in a race of building and removing.
    "job.toml": 'workdir = "/app"\nimage_name = "boinc__test__sorter"\n',
    "main.sh": 'echo "told: $ARGS"\nsort in >out\necho "$ARGS" >log\n',
}


def add_buda_app(directory, app=APP, *more):
    """Add the app, with outputs ``out`` and ``log``, to the project in a directory."""
    source = directory.with_name(f"{directory.name}-app")
    source.mkdir(exist_ok=True)
    for name, text in _FILES.items():
        (source / name).write_text(text)
    words = ["--dockerfile", str(source / "recipe"), "--in", "in", "--out", "out", "--out", "log"]
    files = ["--file", str(source / "main.sh"), "--file", str(source / "job.toml")]
    return add_app([str(directory), app, *words, *files, *more], None)
