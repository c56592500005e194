"""What a hostile project, a hostile neighbour on the submit node or a hostile web page might try.

Each test is named after what the attacker wants, and holds that it is not had. ``docs/security.rst``
says who is trusted with what.
"""
