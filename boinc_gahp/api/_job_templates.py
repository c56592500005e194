"""Which of a batch's jobs have an output template of their own, and which ran programs.

The machine that submitted a batch has the templates in its manifest. A project does not tell them
(``web-rpcs.rst``, "Queries"); but programs' own files tell what they are.
"""

from __future__ import annotations

import json
import threading
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.containers.names import ENDING
from boinc_gahp.errors import TemplatesMissing

if TYPE_CHECKING:
    from boinc_gahp.api.folders import FinishedJob
    from boinc_gahp.api.known_batch import KnownBatch
    from boinc_gahp.templates.types import OutputTemplate

__all__ = ["MOST_UNKNOWN", "JobTemplates", "OwnTemplate", "unknown_template"]

#: More outputs than this a job has only in archives, for a machine that did not submit it.
MOST_UNKNOWN = 100
#: Bytes; [jobs] max_output_bytes applies all the same.
_NO_LIMIT = 1e15


@cache
def unknown_template() -> OutputTemplate:
    """Return the output template of a program whose outputs have to be looked up.

    ``work/3`` is the fourth.
    """
    from boinc_gahp.containers.image import Image  # noqa: PLC0415  (not for lists of batches)
    from boinc_gahp.submit.container_jobs import ContainerJob, output_template  # noqa: PLC0415

    names = tuple(map(str, range(MOST_UNKNOWN + 1)))
    job = ContainerJob(Image("registry", "unknown"), "", outputs=names, output_bytes=_NO_LIMIT)
    return output_template(job)


@lru_cache(64)  # most jobs of a batch have the same
def _read(text: str) -> OutputTemplate:
    from boinc_gahp.templates.reading import read_output_template  # noqa: PLC0415  (as above)

    return read_output_template(text)


class OwnTemplate(NamedTuple):
    """A job's own output template.

    Attributes:
        template: what it says.
        is_program: whether the job ran a program in a container.
        outputs: the outputs that its program has to make, as far as that is known; None: it is not.
    """

    template: OutputTemplate
    is_program: bool = False
    outputs: tuple[str, ...] | None = None


class JobTemplates:
    """The output templates of one batch's jobs; thread-safe.

    Args:
        batch: the batch.
    """

    def __init__(self, batch: KnownBatch) -> None:
        self._batch = batch
        self._manifest = batch.manifest
        self._lock = threading.Lock()
        #: Whether all jobs ran programs, if there is no manifest; None: this was not asked yet.
        self._programs: bool | None = None

    def of(self, job: FinishedJob) -> OwnTemplate | None:
        """Return a job's own template; None: it has none, or it is not known.

        Raises:
            RpcError: the project could not be asked.
            TemplateError: it cannot be read.
        """
        manifest = self._manifest
        # A retry has the templates of the job that it repeats.
        if manifest is not None and job.called in manifest.jobs:
            sent = manifest.job(job.called)
            if sent.output_template is None:
                return None
            outputs = None if sent.program is None else json.loads(sent.program.shared)["outputs"]
            template = _read(sent.output_template)
            is_program = any(file.open_name == ENDING for file in template.files)
            return OwnTemplate(template, is_program, None if outputs is None else tuple(outputs))
        with self._lock:
            if self._programs is None:
                self._programs = self._runs_programs()
        return OwnTemplate(unknown_template(), is_program=True) if self._programs else None

    def _runs_programs(self) -> bool:
        """Tell whether the batch's app is for programs: it has no templates, and needs none."""
        app = self._batch.app_name
        if app == self._batch.session.project_settings.container_app:
            return True
        try:
            self._batch.session.rpc.get_templates(app_name=app)
        except TemplatesMissing:
            return True
        return False
