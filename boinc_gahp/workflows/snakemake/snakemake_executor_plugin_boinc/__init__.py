"""``snakemake --executor boinc``: Snakemake imports each package that is called like this one."""

from boinc_gahp.workflows.snakemake.executor import Executor as Executor
from boinc_gahp.workflows.snakemake.options import (
    ExecutorSettings as ExecutorSettings,
    common_settings as common_settings,
)
