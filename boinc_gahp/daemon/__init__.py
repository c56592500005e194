"""The process that HTCondor spawns: stdin loop, worker threads, the one writer of stdout, console.

``main`` is all that is imported before the banner. ``loop`` moves bytes, ``engine`` answers lines,
``pool`` has the threads, ``projects`` the settings and the bridges, ``dispatch`` turns requests
into calls of a bridge.
"""
