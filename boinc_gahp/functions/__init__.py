"""Calls of Python functions on volunteers' computers: what is sent, and how values come back.

``payload`` makes the files and the command line of a call: the function and its arguments are
pickled by cloudpickle, and ``_fingerprint`` recognizes them when the same program runs again.
``runner`` is the program that runs the call in a container. ``values`` reads what it wrote. Results
come from computers of strangers, so nothing of them is ever unpickled.
"""
