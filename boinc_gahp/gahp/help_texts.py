r"""The console's help for each command, in addition to its syntax and arguments."""

from __future__ import annotations

HELP: dict[str, str] = {
    "ASYNC_MODE_OFF": """\
From now on no R is printed; RESULTS shows whether there are results.""",
    "ASYNC_MODE_ON": """\
From now on a line R is printed when a new result can be fetched with RESULTS. It is printed once
until the next RESULTS, and not for results that exist already.
The console does not need this: it prints results as they come.""",
    "BLAH_JOB_CANCEL": """\
After the answer, the job's files are no longer touched. The abort is recorded, and sent as soon as
the project answers, if necessary by a later boinc_gahp. An unknown id is not an error.
Example: BLAH_JOB_CANCEL 9 boinc/0a1b2c3d.7""",
    "BLAH_JOB_REFRESH_PROXY": """\
HTCondor sends it for jobs with an x509userproxy.
Example: BLAH_JOB_REFRESH_PROXY 8 boinc/0a1b2c3d.7 /tmp/x509up_u1000""",
    "BLAH_JOB_STATUS": """\
The status is 1 (idle), 2 (running), 3 (removed), 4 (completed) or 5 (held). For 4 the ad has
ExitCode; for 5 it has HoldReason, HoldReasonCode and HoldReasonSubCode. The answer comes from the
ledger; boinc_gahp asks the project in the background. A job is completed when all of its output
files are in place.
Example: BLAH_JOB_STATUS 5 boinc/0a1b2c3d.7""",
    "BLAH_JOB_SUBMIT": """\
The result is the job's id, once the job is in the ledger. A little later the job is submitted to
the project, in a batch with similar jobs. If something is wrong with it then, BLAH_JOB_STATUS says
so. JobDirectory is any text that identifies the job: the same JobDirectory means the same job,
until the job is cancelled. BoincApp is the app; Iwd is the directory of the files: those of
TransferInput, and those of TransferOutput (default: all outputs), Out and Err. Arguments,
TransferOutputRemaps, BoincProject, BoincRscFpopsEst and others are as in a submit file.
HTCondor sends such an ad for each job with grid_resource = batch boinc.
In an ad, write a backslash before each backslash; spaces need none.
Example, all in one line:
BLAH_JOB_SUBMIT 3 [BoincApp="uppercase"; Iwd="/home/me"; TransferInput="in"; JobDirectory="a"]""",
    "BLAH_PING": """\
It fails only if this program cannot accept jobs: no settings, no authenticator, no ledger.
HTCondor does not see this failure, because it would keep all jobs idle; instead each job is held,
with the reason. It does not matter whether a project answers: jobs wait until it does.
Example: BLAH_PING 2 boinc""",
    "BOINC_ABORT_JOBS": """\
Running jobs stop when the volunteers' computers next contact the project. If the project does not
know some of the names, the other jobs are still aborted; the error lists those that were not.
Example: BOINC_ABORT_JOBS 7 sweep.1 sweep.2""",
    "BOINC_FETCH_OUTPUT": """\
ALL 0 fetches all outputs under their logical names; pairs after ALL rename them. SOME fetches only
the outputs in the pairs. The pair for stdout is the last one, or the one before the pair for
stderr; if the app has no output of that name, an empty file is written. Standard error is written
to stderr_filename, which is overwritten.
The result has the job's exit status, and its elapsed and CPU time in seconds. For an unfinished
job it is an error. You can fetch the same outputs again.
If the app's only output is named *.zip, it is unpacked into dir. Files whose name begins with a
dot are written only if a pair names them.
Example: BOINC_FETCH_OUTPUT 9 sweep.1 /home/me/sweep err.1 SOME 1 out out.1""",
    "BOINC_PING": """\
The result is NULL if the project answers. Otherwise it says what is wrong.
Example: BOINC_PING 2""",
    "BOINC_QUERY_BATCHES": """\
The status of a job is UNSENT, IN_PROGRESS, DONE or ERROR. With min_mod_time 0 all jobs are listed.
With the server_time of an earlier answer, only jobs that changed since then, or up to five minutes
before, are listed.
Example: BOINC_QUERY_BATCHES 5 0 1 sweep""",
    "BOINC_RETIRE_BATCH": """\
Use it when you have fetched all the outputs that you need. The project then deletes the outputs,
and aborts unfinished jobs.
Example: BOINC_RETIRE_BATCH 12 sweep""",
    "BOINC_SELECT_PROJECT": """\
Earlier requests stay with their project. Without this command, requests go to the project in the
[project] section of the settings.
Example: BOINC_SELECT_PROJECT https://boinc.example.edu/test/ 0123456789abcdef""",
    "BOINC_SET_LEASE": """\
After this time the project may abort and retire the batch. To extend the lease, give the command
again before it ends.
Example: BOINC_SET_LEASE 4 sweep 1795261323""",
    "BOINC_SUBMIT": """\
The result is NULL when all jobs of the batch are on the project. If you repeat the same line, no
job is created twice. An error says what was refused, and that nothing was left on the project.
Write a backslash before spaces, backslashes and line ends within an argument.
Example, two jobs with one input file each, the second with two arguments as well:
BOINC_SUBMIT 3 sweep uppercase 2 sweep.1 0 1 /tmp/a.txt in sweep.2 2 -n 5 1 /tmp/b.txt in""",
    "COMMANDS": """\
You can also type command names in small letters.""",
    "QUIT": """\
Unfinished requests are dropped; those that reached the project continue there.""",
    "RESPONSE_PREFIX": """\
A gridmanager sets it to tell answers from stray output. It also tells boinc_gahp that the requests
come from a gridmanager. Then an error to BOINC_SUBMIT guarantees that none of the jobs exists, and
answers to BOINC_QUERY_BATCHES leave out jobs that were aborted here.""",
    "RESULTS": """\
Prints the number of results, then the results, one per line, in the order in which they came. Each
result is printed once. The console does not need this: it prints results as they come.""",
    "VERSION": """\
It is the text that was printed at the start.""",
}
