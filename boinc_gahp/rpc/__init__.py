"""A BOINC project's web RPCs."""
