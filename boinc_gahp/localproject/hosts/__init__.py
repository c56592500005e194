"""The volunteers' hosts: each asks for work, runs it as processes on this machine, and reports."""
