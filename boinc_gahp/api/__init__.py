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
session         what most functions take: the project, the account, and what was submitted from here
known_batch     what is known of a batch: the last answer of the project, and what was submitted
project, batch  the handles
rows            a package: jobs from a table, and their arguments and files as texts
programs        commands as jobs in containers, with program_files from their words
request         jobs as a request to submit
submission      submits, plans and estimates
manifest        what was submitted; manifest_files keeps it here, and compares with it
finding         the app, the batch or the job of a name or id
watching        asks until batches are over, and counts their jobs
progress        shows it on terminals and in notebooks
outputs         a package: what comes back of jobs
futures         a package: results that are waited for
family          a batch and its retries, and which of them count
control         retry, abort, retire, and the lease
=============== ===================================================================================
"""

import logging

# The project's PHP prints many warnings that do not interest the user of a notebook. A program that
# wants them, or wants to see retries, sets up logging.
logging.getLogger("boinc_gahp").addHandler(logging.NullHandler())
