"""Fetches a finished job's outputs from the project, and puts them where they are wanted.

One engine does it for all callers; begin to read there. Its parts, in the order of its steps:

=============  ====================================================================================
engine         the steps, and the order in which they are done
locate         where the job is on the project: batch, workunit, canonical instance
select         which outputs it has
sinks          what the engine asks of a place for one job's files
job_directory  HTCondor's place: the rules of BOINC_FETCH_OUTPUT and of job ads
container_...  ... of container jobs, whose own files tell how the program ended
names          which names from the network are names for files
stderr         what the job wrote to stderr, without the client's wrapper
delivered      what was delivered before
uploaded       which of the uploaded files is which output
download       one file, from the project into temporary files
archive        archives from the network; zip_archive and tar_archive read them
temporary      puts files in place, complete and on the disk
cancel         keeps files out of directories that are not the job's any more
=============  ====================================================================================

``fetch_output`` and ``fetch_container`` call the engine for HTCondor's jobs, and ``api.fetching``
for people, with the sinks of ``api.folders``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp.fetch.cancel import (
        NEVER_CANCELLED as NEVER_CANCELLED,
        CancelScope as CancelScope,
        Stopped as Stopped,
    )
    from boinc_gahp.fetch.container_directory import (
        ProgramNotRun as ProgramNotRun,
        fetch_container as fetch_container,
    )
    from boinc_gahp.fetch.context import FetchContext as FetchContext
    from boinc_gahp.fetch.delivered import Delivered as Delivered
    from boinc_gahp.fetch.destinations import (
        Directories as Directories,
        errno_of as errno_of,
        explain as explain,
    )
    from boinc_gahp.fetch.directories import make_directories as make_directories
    from boinc_gahp.fetch.engine import FetchedFiles as FetchedFiles, fetch as fetch
    from boinc_gahp.fetch.failures import (
        failure_of as failure_of,
        look_up_failure as look_up_failure,
    )
    from boinc_gahp.fetch.job_directory import (
        fetch_output as fetch_output,
        write_failure as write_failure,
    )
    from boinc_gahp.fetch.leftovers import sweep as sweep
    from boinc_gahp.fetch.locate import Located as Located, NoResult as NoResult
    from boinc_gahp.fetch.names import new_file as new_file, shown as shown
    from boinc_gahp.fetch.sinks import Delivery as Delivery, Members as Members, Sink as Sink
    from boinc_gahp.fetch.stderr import (
        last_line as last_line,
        lines_of as lines_of,
        meaning as meaning,
        unwrap as unwrap,
    )
    from boinc_gahp.fetch.temporary import TryLater as TryLater, registry as registry
    from boinc_gahp.fetch.types import (
        OWN as OWN,
        AdFiles as AdFiles,
        ContainerFiles as ContainerFiles,
        ContainerRequest as ContainerRequest,
        Failure as Failure,
        FetchRequest as FetchRequest,
        FetchResult as FetchResult,
    )

__getattr__, __dir__ = exports(
    __name__,
    {
        "cancel": ["CancelScope", "NEVER_CANCELLED", "Stopped"],
        "container_directory": ["ProgramNotRun", "fetch_container"],
        "context": ["FetchContext"],
        "delivered": ["Delivered"],
        "destinations": ["Directories", "errno_of", "explain"],
        "directories": ["make_directories"],
        "engine": ["FetchedFiles", "fetch"],
        "failures": ["failure_of", "look_up_failure"],
        "job_directory": ["fetch_output", "write_failure"],
        "leftovers": ["sweep"],
        "locate": ["Located", "NoResult"],
        "names": ["new_file", "shown"],
        "sinks": ["Delivery", "Members", "Sink"],
        "stderr": ["last_line", "lines_of", "meaning", "unwrap"],
        "temporary": ["TryLater", "registry"],
        "types": [
            "AdFiles",
            "ContainerFiles",
            "ContainerRequest",
            "Failure",
            "FetchRequest",
            "FetchResult",
            "OWN",
        ],
    },
)
