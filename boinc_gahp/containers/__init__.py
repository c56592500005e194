"""Any program: from its description to the files of a container job, and back; no I/O.

A project has one app whose program is BOINC's ``docker_wrapper``; it builds an image and runs a
script in a container (``containers.rst``). ``image`` reads and checks the name of an image,
``script`` writes the script that runs programs, and tells which outputs it leaves, ``job_files``
writes the other files that the wrapper reads, and has the names of a job's own files, ``ending``
reads what the script tells about a program's end. Defaults and checks are in ``rules``.
``submit.container_jobs`` puts all of it together.
"""
