"""The project's web server: BOINC's web RPCs, and downloads and uploads."""
