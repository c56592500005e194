"""How long a batch is kept if nobody renews its lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.templates import DEFAULTS

if TYPE_CHECKING:
    from boinc_gahp.templates import InputTemplate


def longest(template: InputTemplate, delay_bound: float | None = None) -> float:
    """Return the seconds after which the last instance of a job is over in any case.

    Each instance may take until its deadline, and is followed by another until there are too many
    errors; one more deadline is for the time that instances wait to be sent.

    Args:
        template: the job's input template.
        delay_bound: the request's value, which is filled into the template if that has another
            (:mod:`boinc_gahp.submit.parameters`).
    """
    deadline = delay_bound or template.delay_bound or DEFAULTS["delay_bound"]
    errors = template.max_error_results
    total = template.max_total_results
    most_errors = DEFAULTS["max_error_results"] if errors is None else errors
    most = DEFAULTS["max_total_results"] if total is None else total
    return deadline * (min(most_errors + 1, most) + 1)
