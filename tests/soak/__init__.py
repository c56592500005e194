"""Days of a submit node, in minutes; see main.py."""
