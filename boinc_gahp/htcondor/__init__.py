"""What each BLAH_* request does, for HTCondor 10 and later: job ads, batches, status.

``service`` answers the requests from the ledger alone; ``refusals`` stands before it, and has jobs
held if the settings or the ledger cannot be used. One ``manager`` for each account on a project, in
one of the user's daemons, does the rest: ``batching`` and ``sending`` make batches of waiting jobs
and submit them, ``rollback`` aborts and divides those that failed, ``following`` asks the
project for the states of jobs, ``fetching_queue`` and ``fetching`` fetch outputs, ``failures``
explains why there are none, ``cleanup`` aborts and retires; ``context`` has what they share.
``job_ad`` reads a job's ad into a ``description``, ``status_ad`` writes the answer, ``hold_codes``
has the codes. ``reconciling`` sends aborts and retirements without a daemon.
"""
