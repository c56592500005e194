"""Which of a batch's jobs have an output template of their own, and which ran programs.

The machine that submitted a batch has the templates in its manifest. Another one asks the project,
about one job; only if that job ran a program, about the others, too.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.containers import ENDING
from boinc_gahp.errors import ProjectError

if TYPE_CHECKING:
    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.fetching_batch import FinishedJob

__all__ = ["JobTemplates", "OwnTemplate"]


class OwnTemplate(NamedTuple):
    """A job's own output template.

    Attributes:
        text: XML text.
        is_program: whether the job ran a program in a container.
        outputs: the outputs that its program has to make, as far as that is known; None: it is not.
    """

    text: str
    is_program: bool = False
    outputs: tuple[str, ...] | None = None


class JobTemplates:
    """The output templates of one batch's jobs; thread-safe.

    Args:
        batch: the batch.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._manifest = batch.manifest
        self._lock = threading.Lock()
        #: Whether the project is asked about each job; None: this is not known yet.
        self._ask: bool | None = None

    def of(self, job: FinishedJob) -> OwnTemplate | None:
        """Return a job's own template; None: it has none, or it is not known.

        Raises:
            RpcError: the project could not be asked.
        """
        manifest = self._manifest
        # A retry has the templates of the job that it repeats.
        if manifest is not None and job.called in manifest.jobs:
            sent = manifest.job(job.called)
            if sent.output_template is None:
                return None
            outputs = None if sent.program is None else json.loads(sent.program.shared)["outputs"]
            return _own(sent.output_template, None if outputs is None else tuple(outputs))
        with self._lock:
            if self._ask is None:
                own = self._asked(job)
                self._ask = own is not None
                return own
        return self._asked(job) if self._ask else None

    def _asked(self, job: FinishedJob) -> OwnTemplate | None:
        """Return a program's own template, as the project has it."""
        try:
            text = self._batch.project.rpc.get_templates(job_name=job.name)
        except ProjectError:
            return None  # the app's are asked for, and that says what is wrong
        own = _own(text)
        return own if own.is_program else None


def _own(text: str, outputs: tuple[str, ...] | None = None) -> OwnTemplate:
    from boinc_gahp.templates import read_output_template  # noqa: PLC0415  (not for lists of batches)

    files = read_output_template(text).files
    return OwnTemplate(text, bool(files) and files[0].open_name == ENDING, outputs)
