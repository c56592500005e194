"""What a hostile volunteer, project, user of the machine, network or file might try.

Each test is named after what the attacker wants, and holds that it is not had.
``docs/security.rst`` says who may be hostile, and ``tests/documents/security_claims`` which test
holds which of its sentences.
"""
