"""A scan over a parameter with a compiled program: each angle of a pendulum is a job.

The program needs nothing special. It is compiled on this machine, statically, so that it runs in
any image of Linux, and it travels with the jobs::

    cc -O2 -static -o pendulum scripts/examples/pendulum.c -lm
    python scripts/examples/program_scan.py

The settings name the project. For a local one with an app for programs, see docs/local-project.rst,
"Jobs in containers". For a real project, nothing has to change but what volunteers should know: how
long a job takes, as in ``parameters=Parameters(fpops_est="2T", delay_bound="3d")``, and jobs should
take some minutes at least. If the program is interrupted, run it again: it picks the jobs up.
"""

import csv
import sys
from pathlib import Path

from boinc_gahp import Project
from boinc_gahp.errors import JobFailed

IMAGE = sys.argv[1] if len(sys.argv) > 1 else "debian:stable-slim"

with Project.from_settings() as project:
    rows = [{"angle": angle} for angle in range(10, 180, 10)]
    jobs = project.run("./pendulum {angle}", image=IMAGE, rows=rows, outputs=[])
    with Path("periods.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["degrees", "seconds"])
        for job in jobs:
            try:
                table.writerow(job.result().stdout.split())
            except JobFailed as error:
                print(error)
