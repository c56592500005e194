"""Any program: from its description to the files of a container job, and back; no I/O.

A project has one app whose program is BOINC's ``docker_wrapper``; it builds an image and runs a
script in a container (``containers.rst``). ``image`` reads and checks the name of an image,
``script`` writes the script that runs programs, ``job_files`` the other files that the wrapper
reads, and tells which files a job's templates have, ``ending`` reads what the script tells about a
program's end. Defaults and checks are in ``rules``.
"""
