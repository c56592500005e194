"""Sends batches of jobs to a project, asks for their status, and aborts them.

:func:`boinc_gahp.submit.engine.submit` is the one engine; begin to read there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp.submit.abort import (
        ABORT_AGAIN as ABORT_AGAIN,
        abort_empty as abort_empty,
        abort_once as abort_once,
        abort_until_certain as abort_until_certain,
        drop as drop,
    )
    from boinc_gahp.submit.association import Association as Association
    from boinc_gahp.submit.boinc_submit import (
        ConsoleJournal as ConsoleJournal,
        GridmanagerJournal as GridmanagerJournal,
    )
    from boinc_gahp.submit.buda import (
        buda_request as buda_request,
    )
    from boinc_gahp.submit.buda_names import (
        BUDA as BUDA,
        buda_name as buda_name,
        project_app as project_app,
        short_name as short_name,
    )
    from boinc_gahp.submit.checks import (
        MAX_BATCH_NAME as MAX_BATCH_NAME,
        MAX_JOB_NAME as MAX_JOB_NAME,
        base_name as base_name,
        extension as extension,
        find_output as find_output,
        fold as fold,
    )
    from boinc_gahp.submit.container_jobs import (
        ContainerJob as ContainerJob,
        Tree as Tree,
        make_container_jobs as make_container_jobs,
        output_template as output_template,
    )
    from boinc_gahp.submit.context import Context as Context
    from boinc_gahp.submit.control import (
        FORGOTTEN as FORGOTTEN,
        abort_each as abort_each,
        abort_jobs as abort_jobs,
        reconcile as reconcile,
        retire_batch as retire_batch,
        set_lease as set_lease,
    )
    from boinc_gahp.submit.digests import Digests as Digests, stat_input as stat_input
    from boinc_gahp.submit.engine import submit as submit
    from boinc_gahp.submit.journal import Journal as Journal, Sending as Sending
    from boinc_gahp.submit.made_files import MadeFiles as MadeFiles, Member as Member
    from boinc_gahp.submit.meter import Interrupted as Interrupted, Meter as Meter
    from boinc_gahp.submit.names_in_use import check_names as check_names
    from boinc_gahp.submit.project_cache import BatchView as BatchView, ProjectCache as ProjectCache
    from boinc_gahp.submit.query import (
        look_up as look_up,
        missing as missing,
        query_batches as query_batches,
        query_jobs as query_jobs,
    )
    from boinc_gahp.submit.singleflight import SingleFlight as SingleFlight
    from boinc_gahp.submit.staging import PhysicalNames as PhysicalNames
    from boinc_gahp.submit.trees import tree_bytes as tree_bytes, tree_stamp as tree_stamp
    from boinc_gahp.submit.types import (
        BatchJobs as BatchJobs,
        BatchStatuses as BatchStatuses,
        Client as Client,
        File as File,
        InlineFile as InlineFile,
        Input as Input,
        Job as Job,
        JobIds as JobIds,
        LocalFile as LocalFile,
        OnProgress as OnProgress,
        Parameter as Parameter,
        Parameters as Parameters,
        ProgramWords as ProgramWords,
        Progress as Progress,
        RemoteFile as RemoteFile,
        StagedFile as StagedFile,
        SubmitRequest as SubmitRequest,
        Validation as Validation,
        by_open_name as by_open_name,
    )
    from boinc_gahp.submit.validate import BatchValidator as BatchValidator

__getattr__, __dir__ = exports(
    __name__,
    {
        "abort": ["ABORT_AGAIN", "abort_empty", "abort_once", "abort_until_certain", "drop"],
        "association": ["Association"],
        "boinc_submit": ["GridmanagerJournal", "ConsoleJournal"],
        "buda": ["buda_request"],
        "buda_names": ["BUDA", "buda_name", "project_app", "short_name"],
        "checks": [
            "MAX_BATCH_NAME",
            "MAX_JOB_NAME",
            "base_name",
            "extension",
            "find_output",
            "fold",
        ],
        "container_jobs": ["ContainerJob", "Tree", "make_container_jobs", "output_template"],
        "context": ["Context"],
        "control": [
            "FORGOTTEN",
            "abort_each",
            "abort_jobs",
            "reconcile",
            "retire_batch",
            "set_lease",
        ],
        "digests": ["Digests", "stat_input"],
        "engine": ["submit"],
        "journal": ["Journal", "Sending"],
        "made_files": ["MadeFiles", "Member"],
        "meter": ["Interrupted", "Meter"],
        "names_in_use": ["check_names"],
        "project_cache": ["BatchView", "ProjectCache"],
        "query": ["look_up", "missing", "query_batches", "query_jobs"],
        "singleflight": ["SingleFlight"],
        "staging": ["PhysicalNames"],
        "trees": ["tree_bytes", "tree_stamp"],
        "types": [
            "BatchJobs",
            "BatchStatuses",
            "Client",
            "File",
            "InlineFile",
            "Input",
            "Job",
            "JobIds",
            "LocalFile",
            "OnProgress",
            "Parameter",
            "Parameters",
            "ProgramWords",
            "Progress",
            "RemoteFile",
            "StagedFile",
            "SubmitRequest",
            "Validation",
            "by_open_name",
        ],
        "validate": ["BatchValidator"],
    },
)
