"""A work generator for a local project: a parameter sweep over the logistic map.

For each growth rate it makes a job that follows the population for some generations. When all jobs
of the sweep exist, it yields no more. It stores nothing: it asks the project which jobs exist
already. To try it, with ``logistic.py`` of this directory as the app::

    cp scripts/examples/sweep.py scripts/examples/logistic.py DIR/modules/
    boinc_gahp local-project add-app DIR logistic \
        --command '{python} {project}/modules/logistic.py' \
        --out orbit.txt --work-generator sweep:sweep
    boinc_gahp local-project run DIR
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.localproject.backend.create_work import NewJob

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.localproject.backend.generator import WorkRequest

#: Growth rates in thousandths, so that names and values are exact.
RATES = range(2500, 4000, 50)
GENERATIONS = 1000


def sweep(request: WorkRequest) -> Iterator[NewJob]:
    """Yield the jobs of the sweep that do not exist yet; the project takes as many as it wants."""
    for rate in RATES:
        name = f"{request.app}_{rate}"
        if request.exists(name):
            continue
        yield NewJob(name=name, command_line=f"{rate / 1000} {GENERATIONS}")
