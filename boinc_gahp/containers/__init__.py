"""Any program: from its description to the files of a container job, and back; no I/O.

A project has one app whose program is BOINC's ``docker_wrapper``; it builds an image and runs a
script in a container (``containers.rst``). ``image`` reads and checks the name of an image,
``script`` writes the script that runs programs, ``build_files`` the other files that the wrapper
reads, ``job_files`` tells which files a job's templates have, and ``ending`` reads what the script
tells about a program's end. The files' names are in ``names``, defaults and checks in ``rules``.
"""
