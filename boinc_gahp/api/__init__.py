"""Remote job submission: the Python API for people and programs.

::

    from boinc_gahp import Job, Project

    with Project("https://boinc.example.edu/test/", authenticator) as project:
        jobs = [Job(args=["--rate", str(rate)], inputs={"in": "data.txt"}) for rate in range(10)]
        batch = project.submit("logistic", jobs, name="sweep", progress=print)
        batch.wait(progress=print)
        batch.fetch("results")
        for reason in batch.reasons():
            print(reason)
        batch.retire()

Its parts, in the order in which a batch meets them:

=============== ===================================================================================
session         the project, the account and the settings, which most functions take
project, batch  the handles; what a batch keeps is known_batch's, and job is one of its jobs
_runs           the part of a project that returns futures
app             what an app's templates say
rows            a package: jobs from a table
files           input files and arguments as text
programs        commands as jobs in containers, with _program_files from their words
request         jobs as a request to submit
submission      submits, plans and estimates
manifest        what was submitted; manifest_files keeps it on this machine
comparing       whether a batch that is there has the same jobs, and the difference
finding         the batch or the job of a name or id
_control        the lease, abort, retire
watching        asks until batches are over; counting makes numbers of the answers
progress        shows it on terminals and in notebooks
outputs         a package: what comes back of jobs
futures         a package: results that are waited for
family          a batch and its retries, and which of them count; retrying sends them
=============== ===================================================================================
"""

import logging

# The project's PHP prints many warnings that do not interest the user of a notebook. A program that
# wants them, or wants to see retries, sets up logging.
logging.getLogger("boinc_gahp").addHandler(logging.NullHandler())
