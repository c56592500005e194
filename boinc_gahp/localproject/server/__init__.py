"""The project's web server: BOINC's web RPCs, and downloads and uploads."""

from boinc_gahp.extras import need_extra

# Nearly all modules of the local project import one of here, so they say it in the same words.
need_extra("local-project", "a local project", "flask", "waitress")
