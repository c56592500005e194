"""What each BOINC_* request does, as a sequence of web RPCs."""
