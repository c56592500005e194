"""Settings and secrets.

``settings`` holds the values, ``places`` the files and directories, ``_private`` reads files that
may hold a secret, ``_reading`` checks a file's contents, ``layers`` combines files into
:class:`Settings`, ``accounts`` finds a project in them, ``urls`` tells projects apart, ``writing``
adds an account. Nothing slow is imported, because a daemon needs all but the last at its start.
"""
