"""Fetches a finished job's outputs from the project, and puts them where they are wanted.

One engine does it for all callers; begin to read there. Its parts, in the order of its steps:

=============  ====================================================================================
engine         the steps, and the order in which they are done
locate         where the job is on the project: batch, workunit, canonical instance
placements     which files of a job are wanted, where each goes, and under which name
job_directory  HTCondor's place: the rules of BOINC_FETCH_OUTPUT and of job ads
container_...  ... of container jobs, whose own files tell how the program ended
job_end        what the job wrote to stderr, without the client's wrapper; and how it ended
_placed        what was put in place before
_uploaded      which outputs it has, and which of the uploaded files is which
_download      one file, from the project into temporary files
_archive       archives from the network; _tar_archive reads those that are not zip
temporary      puts files in place, complete and on the disk
destinations   directories of files; keeps files out of those that are not the job's any more
=============  ====================================================================================

``fetch_output`` and ``fetch_container`` call the engine for HTCondor's jobs, and
``api.outputs.fetching`` for people, with the folders of ``api.outputs.folders``.
"""
