"""Snakemake's executor; these modules import Snakemake's interface, so nothing else imports them.

``snakemake_executor_plugin_boinc`` is the package that Snakemake looks for; ``setup.cfg`` installs
it beside ``boinc_gahp``.

=============  ====================================================================================
executor       submits ready jobs, and waits for them
options        what Snakemake has to know of it, and its options
rule_jobs      a job of Snakemake as a command line with files in and files out
=============  ====================================================================================
"""

from boinc_gahp.extras import need_extra

need_extra(
    "snakemake",
    "a workflow of Snakemake",
    "snakemake_interface_common",
    "snakemake_interface_executor_plugins",
)
