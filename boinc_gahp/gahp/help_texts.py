r"""What the console says of each command, beyond its syntax and arguments."""

from __future__ import annotations

HELP: dict[str, str] = {
    "ASYNC_MODE_OFF": """\
From now on results wait in silence until RESULTS asks for them.""",
    "ASYNC_MODE_ON": """\
From now on a line R is printed when a result is there to be asked for with RESULTS. It is printed
once, until RESULTS is given, and not for results that were there already.
The console needs none of it: it prints results as they come.""",
    "BLAH_JOB_CANCEL": """\
The job's files are left alone from the answer on. That it is to be aborted is written down, and
done as soon as the project answers, by a later boinc_gahp if need be. An id that is not known is no
error.
Example: BLAH_JOB_CANCEL 9 boinc/0a1b2c3d.7""",
    "BLAH_JOB_REFRESH_PROXY": """\
HTCondor sends it for jobs with an x509userproxy.
Example: BLAH_JOB_REFRESH_PROXY 8 boinc/0a1b2c3d.7 /tmp/x509up_u1000""",
    "BLAH_JOB_STATUS": """\
The status is 1 (idle), 2 (running), 3 (removed), 4 (completed) or 5 (held); the ad has ExitCode for
4, and HoldReason, HoldReasonCode and HoldReasonSubCode for 5. It is what is known here; the project
is asked in the background. A job is completed when all of its output files are in place.
Example: BLAH_JOB_STATUS 5 boinc/0a1b2c3d.7""",
    "BLAH_JOB_SUBMIT": """\
The result is the job's id, once the job is written down. It goes to the project a little later, in
a batch with others like it; what is wrong with it then is told by BLAH_JOB_STATUS.
JobDirectory is any text that names the job: with the same one, the same job is meant, until it was
cancelled. BoincApp names the app; Iwd is where files are: those in TransferInput, and those in
TransferOutput (without it, all outputs), Out and Err. Arguments, TransferOutputRemaps,
BoincProject, BoincRscFpopsEst and others are as in a submit file.
HTCondor sends such an ad for each job with grid_resource = batch boinc.
In an ad, spaces need no backslash before them, but a backslash does.
Example, all in one line:
BLAH_JOB_SUBMIT 3 [BoincApp="uppercase"; Iwd="/home/me"; TransferInput="in"; JobDirectory="a"]""",
    "BLAH_PING": """\
It fails only when this program can take no jobs: no settings, no authenticator, no ledger. HTCondor
is not told of that here, for it would keep all jobs idle; each is held instead, with the reason.
Whether a project answers is of no concern: jobs wait until it does.
Example: BLAH_PING 2 boinc""",
    "BOINC_ABORT_JOBS": """\
Jobs that are running on volunteers' computers stop when these next talk to the project. Names that
the project does not know do not keep the others from being aborted; the error tells which were not.
Example: BOINC_ABORT_JOBS 7 sweep.1 sweep.2""",
    "BOINC_FETCH_OUTPUT": """\
ALL 0 fetches all outputs under their logical names; pairs after ALL rename them. SOME fetches only
those that the pairs name; the pair of stdout, the last one or the one before that of stderr, gives
an empty file if it is no output's. Standard error is written to stderr_filename, anew each time.
The result has the job's exit status, and its elapsed and CPU time in seconds. A job that is not
finished gives an error. Fetching twice does no harm.
If the app's only output is named *.zip, it is unpacked into dir. What has a name that begins with a
dot is only written if a pair names it.
Example: BOINC_FETCH_OUTPUT 9 sweep.1 /home/me/sweep err.1 SOME 1 out out.1""",
    "BOINC_PING": """\
The result is NULL when the project answers, and else says what is wrong.
Example: BOINC_PING 2""",
    "BOINC_QUERY_BATCHES": """\
The status of a job is UNSENT, IN_PROGRESS, DONE or ERROR. With min_mod_time 0 all jobs are listed;
with the server_time of an earlier answer, those that changed since, or up to five minutes before.
Example: BOINC_QUERY_BATCHES 5 0 1 sweep""",
    "BOINC_RETIRE_BATCH": """\
To be done once all outputs that are wanted have been fetched: they are then deleted on the project,
and jobs that are not finished are aborted.
Example: BOINC_RETIRE_BATCH 12 sweep""",
    "BOINC_SELECT_PROJECT": """\
Requests that were given before stay with their project. Until this is used, requests go to the
project in the [project] section of the settings.
Example: BOINC_SELECT_PROJECT https://boinc.example.edu/test/ 0123456789abcdef""",
    "BOINC_SET_LEASE": """\
When the time has passed, the project may abort and retire the batch. Longer leases are set by
giving the command again, before it is too late.
Example: BOINC_SET_LEASE 4 sweep 1795261323""",
    "BOINC_SUBMIT": """\
The result is NULL when all jobs of the batch are on the project; giving the same line again never
makes a second job. An error says what was refused, and that nothing was left behind.
Spaces, backslashes and line ends within an argument are written with a backslash before them.
Example, two jobs with one input file each, the second with two arguments as well:
BOINC_SUBMIT 3 sweep uppercase 2 sweep.1 0 1 /tmp/a.txt in sweep.2 2 -n 5 1 /tmp/b.txt in""",
    "COMMANDS": """\
Command names may be written in small letters, too.""",
    "QUIT": """\
Requests that are not finished are dropped; those that reached the project go on there.""",
    "RESPONSE_PREFIX": """\
A gridmanager sets this to tell answers from stray output. It also tells boinc_gahp that a
gridmanager is asking: an error to BOINC_SUBMIT is then a promise that none of the jobs exists, and
jobs that were aborted here are left out of later answers to BOINC_QUERY_BATCHES.""",
    "RESULTS": """\
Prints how many results there are, and these, one a line, in the order in which they came; each is
given once. The console needs none of it: it prints results as they come.""",
    "VERSION": """\
The same text that was printed at the start.""",
}
