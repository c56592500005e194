"""``boinc_gahp batch``: remote job submission for people."""
