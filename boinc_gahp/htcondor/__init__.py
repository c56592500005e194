"""What each BLAH_* request does, for HTCondor 10 and later: job ads, batches, status.

Every request comes to ``refusals``, which has jobs held if the settings or the ledger cannot be
used, and hands all others on to ``service``, which answers from the ledger, without the project.
One ``_manager`` for each account on a project, in one of the user's daemons, does the rest:
``_batching`` and ``_sending`` make batches of waiting jobs and submit them, ``_ledger_journal``
notes how far each is, ``_sending_action`` decides what to do about one that failed, ``_rollback``
aborts and divides it, ``_following`` asks the project for the states of jobs, ``_fetching`` fetches
outputs, ``_failures`` explains why there are none, ``_upkeep`` renews leases, aborts and retires;
``_context`` has what they share. ``_job_ad`` reads a job's ad (``attributes``) into a
``_description``, ``status_ad`` writes the answer, and has the codes of holds. ``reconciling`` sends
aborts and retirements without a daemon.
"""
