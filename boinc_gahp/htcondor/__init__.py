"""What each BLAH_* request does, for HTCondor 10 and later: job ads, batches, status.

``service`` answers the requests from the ledger alone; ``refusals`` stands before it, and has jobs
held if the settings or the ledger cannot be used. One ``_manager`` for each account on a project,
in one of the user's daemons, does the rest: ``_batching`` and ``_sending`` make batches of waiting
jobs and submit them, ``_rollback`` aborts and divides those that failed, ``_following`` asks the
project for the states of jobs, ``_fetching`` fetches outputs, ``_failures`` explains why there are
none, ``_upkeep`` renews leases, aborts and retires; ``_context`` has what they share. ``_job_ad``
reads a job's ad (``attributes``) into a ``_description``, ``status_ad`` writes the answer, and has
the codes of holds. ``reconciling`` sends aborts and retirements without a daemon.
"""
