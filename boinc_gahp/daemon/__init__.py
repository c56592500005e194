"""The process that HTCondor spawns: stdin loop, worker threads, the one writer of stdout, console.

Only ``main`` is imported before the banner is out. ``loop`` moves bytes, ``engine`` answers lines,
``pool`` has the threads, ``projects`` the settings, the contexts of projects and the service for
HTCondor's jobs, ``dispatch`` turns requests into calls.
"""
