"""The protocol, without I/O: bytes to requests, results to lines, state of a conversation.

Modules, in the order of a request's way: ``lines`` (bytes to Request Lines, lines to arguments),
``commands`` (all commands, arguments to typed requests), ``conversation`` (Return Lines, RESULTS,
``R``, the prefix), ``results`` (Result Lines). Each command's request, syntax and help are in
``commands``, ``boinc_commands`` or ``blah_commands``; they are made of ``command`` and ``grammar``.
``banner`` comes first: before it is out, nothing else may load, so nothing is imported here.
"""
