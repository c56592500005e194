"""Open names of a container job's own files.

The wrapper's files, and BOINC's, are in the slot, which is ``/app`` in the container. The user's
are in a directory of it, so that no name of a user can meet one of these.
"""

from __future__ import annotations

#: What the wrapper reads (``containers.rst``, "What the wrapper does").
DOCKERFILE = "Dockerfile"
JOB_TOML = "job.toml"

#: What the container runs.
SCRIPT = "run.sh"

#: What a job has beside its user's files and archives of them.
OWN_FILES = frozenset({DOCKERFILE, JOB_TOML, SCRIPT})

#: The directory of the user's files.
WORK = "work/"

#: How the program ended (:func:`~boinc_gahp.containers.ending.read_ending`), and what it wrote.
ENDING = "_exit"
STDOUT = "_stdout"
STDERR = "_stderr"

#: A tar archive of the outputs whose names are not known beforehand: directories, and all that is
#: in them; if the job names no outputs, the new or changed files. Paths are relative to ``WORK``.
PACKED = "_outputs.tar"
