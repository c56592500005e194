"""Sends batches of jobs to a project, asks for their status, and aborts them.

:func:`boinc_gahp.submit.engine.submit` is the one engine; begin to read there.
"""
