"""What a hostile project, neighbour on the submit node or web page might try.

Each test is named after what the attacker wants, and holds that it is not had.
``docs/security.rst`` says who is trusted with what.
"""
