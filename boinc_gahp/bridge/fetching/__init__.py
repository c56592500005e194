"""Fetching: a finished job's outputs, from the project to where they are wanted.

One engine does it for all callers; begin to read there. Its parts, in the order of its steps:

=============  ====================================================================================
engine         the steps, and the order in which they are done
locate         where the job is on the project: batch, workunit, canonical instance
outputs        which outputs it has
sinks          what the engine asks of a place for one job's files
job_directory  HTCondor's place: the rules of BOINC_FETCH_OUTPUT and of job ads
names          which names from the network are names for files
stderr         what the job wrote to stderr, without the client's wrapper
delivered      what was delivered before
uploaded       which of the uploaded files is which output
download       one file, from the project into temporary files
unzip          archives from the network
=============  ====================================================================================

Its callers are ``fetch_output`` here, for BOINC_FETCH_OUTPUT and for ``blah.fetching``, which gets
HTCondor's jobs one after the other from ``blah.fetching_queue``; and, for people,
``remote.fetching``, whose sinks are in ``remote.folders`` and ``remote.zips``.

``bridge.temporary`` puts files in place, complete and on the disk; ``bridge.gate`` keeps them out
of directories that are not the job's any more.
"""
