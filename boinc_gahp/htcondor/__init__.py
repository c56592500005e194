"""What each BLAH_* request does, for HTCondor 10 and later: job ads, batches, status.

``service`` answers the requests from the ledger alone; ``refusals`` stands before it, and has jobs
held if the settings or the ledger cannot be used. One ``keeper`` for each account on a project, in
one of the user's daemons, does the rest: ``sending`` makes batches of waiting jobs and submits
them, ``following`` asks the project what became of them, ``fetching_queue`` and ``fetching`` fetch
the outputs, ``failures`` says why there are none, ``ending`` pays what is owed in the end; ``kept``
holds what they share. ``ad`` reads a job's ad into a ``description``, ``status_ad`` writes the
answer, ``codes`` has the hold codes. ``settling`` pays debts without a daemon.
"""
