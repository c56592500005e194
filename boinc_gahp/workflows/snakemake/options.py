"""What Snakemake has to know of the executor, and its options on Snakemake's command line.

Snakemake evaluates the types of the fields, so annotations are not postponed here.
"""

from dataclasses import dataclass, field

from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase

__all__ = ["ExecutorSettings", "common_settings"]

#: Files come and go through this machine, so Snakemake need not know that there is no shared file
#: system, and a job never starts Snakemake.
common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_default_storage_provider_args=False,
    pass_default_resources_args=False,
    auto_deploy_default_storage_provider=False,
    can_transfer_local_files=True,
)


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    """Options of ``snakemake``, as ``--boinc-image``."""

    image: str | None = field(
        default=None,
        metadata={
            "help": "Image for rules without container:, such as python:3.12-slim "
            "(default: container_image in boinc_gahp's settings).",
            "type": str,
        },
    )
    project: str | None = field(
        default=None,
        metadata={
            "help": "The NAME of a section [projects.NAME] in boinc_gahp's settings "
            "(default: [project]).",
            "type": str,
        },
    )
    app: str | None = field(
        default=None,
        metadata={
            "help": "The project's app that runs programs in containers "
            "(default: container_app in boinc_gahp's settings).",
            "type": str,
        },
    )
    network: bool = field(
        default=False, metadata={"help": "Let the jobs use the volunteers' network."}
    )
    follow_links: bool = field(
        default=False,
        metadata={"help": "Follow symbolic links that lead out of input directories."},
    )
