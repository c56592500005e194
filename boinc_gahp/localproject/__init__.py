"""A BOINC project in one process."""
