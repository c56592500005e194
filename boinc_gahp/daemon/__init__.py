"""The process that HTCondor spawns: stdin loop, worker threads, the one writer of stdout, console.

Only ``main`` is imported before the banner is out. ``_loop`` moves bytes, ``_engine`` answers lines
and gives requests to threads, ``_dispatch`` turns requests into calls, ``_projects`` has the
settings, the contexts of projects and the service for HTCondor's jobs.
"""
