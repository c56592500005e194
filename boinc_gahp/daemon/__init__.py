"""The process that HTCondor spawns: stdin loop, worker threads, the one writer of stdout, console.

``main`` is all that is imported before the banner. ``loop`` moves bytes, ``engine`` answers lines,
``pool`` has the threads, ``projects`` the settings, the bridges and the service of HTCondor's jobs,
``dispatch`` turns requests into calls of these.
"""
