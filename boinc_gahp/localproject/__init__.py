"""A BOINC project in one process, on 127.0.0.1: for trying out, for tests, for learning.

It answers BOINC's web RPCs as the real server does (``web-rpcs.rst``), keeps its data in BOINC's
own tables on SQLite, and has a few volunteers that run jobs as processes on this machine
(``back-end.rst``).
"""
