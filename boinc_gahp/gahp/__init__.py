"""The protocol, without I/O: bytes to requests, results to lines, state of a conversation.

Modules, in the order of a request's way: ``lines`` (bytes to Request Lines), ``words`` (lines to
arguments), ``commands`` (the table of commands) on ``grammar``, ``parse`` (arguments to typed
``requests``), ``conversation`` (Return Lines, RESULTS, ``R``, the prefix), ``results`` (Result
Lines), ``banner``. Nothing is imported here: the banner has to be out before anything else loads.
"""
