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
app             what an app's templates say
table, rows     jobs from a table: of Python, and of a file; rows reads CSV and JSON
row_jobs        a row as a job; patterns fills placeholders
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
fetching        outputs, with _fetching_batch's threads, into folders or zips; of jobs that ran
                programs, into _program_folders
_records        a row for each job, for DataFrames and for jobs.csv
logs            how single jobs ended, what they wrote, and each reason once
_runs, _mapping from rows to futures over the jobs of an app, or of a program
futures         a future for each job; _gathering sets their results as the jobs end
family          a batch and its retries, and which of them count; retrying sends them
=============== ===================================================================================
"""

import logging

# The project's PHP prints many warnings that do not interest the user of a notebook. A program that
# wants them, or wants to see retries, sets up logging.
logging.getLogger("boinc_gahp").addHandler(logging.NullHandler())
