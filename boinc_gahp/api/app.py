"""An app of a project, as its job templates describe it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boinc_gahp.errors import AppNotFound, BadRequest, GahpError, NotFound
from boinc_gahp.text import nearest, quoted

if TYPE_CHECKING:
    from boinc_gahp.api.session import Session
    from boinc_gahp.templates.types import (
        InputFileInfo,
        InputTemplate,
        OutputFileInfo,
        OutputTemplate,
    )


@dataclass(frozen=True)
class App:
    """What a job of an app needs, and which outputs it makes (``templates.rst``).

    Attributes:
        name: the app's name.
        input_template: everything that the app's input template says; None for what it leaves out.
        output_template: the same for the output template.
    """

    name: str
    input_template: InputTemplate = field(repr=False)
    output_template: OutputTemplate = field(repr=False)

    @property
    def inputs(self) -> tuple[InputFileInfo, ...]:
        """The files that each job has to name, by ``open_name``, in the template's order."""
        return self.input_template.per_job_files

    @property
    def outputs(self) -> tuple[OutputFileInfo, ...]:
        """The files that a job makes; those with ``optional`` may be missing."""
        return self.output_template.files

    def __repr__(self) -> str:
        inputs = ", ".join(info.open_name for info in self.inputs) or "none"
        outputs = ", ".join(
            info.open_name + (" (optional)" if info.optional else "") for info in self.outputs
        )
        return f"<App {self.name!r} inputs: {inputs}; outputs: {outputs or 'none'}>"


def look_up(session: Session, name: str) -> App:
    """Return an app.

    Raises:
        AppNotFound: the project has no app of this name; suggests the most similar app of the
            account's batches, since a project does not list its apps.
        PermissionDenied: the account may not submit to it.
        TemplateError: its templates cannot be read.
        BadRequest: it is a BUDA app, whose inputs and outputs no project tells.
        RpcError: the project could not be asked.
    """
    from boinc_gahp.submit.checks import buda_name  # noqa: PLC0415  (not for lists of batches)
    from boinc_gahp.templates.reading import read_templates  # noqa: PLC0415

    if buda_name(name) is not None:
        raise BadRequest(
            f"a project does not tell the inputs and outputs of a BUDA app ({quoted(name)}): its "
            "admin knows them"
        )

    try:
        text = session.rpc.get_templates(app_name=name)
    except NotFound as error:
        raise unknown_app(session, name, error) from error
    return App(name, *read_templates(text))


def unknown_app(session: Session, name: str, error: NotFound) -> AppNotFound:
    """Return the error for an app that the project does not know."""
    try:
        used = sorted({batch.app_name for batch in session.rpc.query_batches()})
    except GahpError:
        used = []  # the first error is more useful
    meant = nearest(name, used)
    if meant:
        more = f"did you mean {meant}?"
    elif used:
        more = f"your batches use {', '.join(used)}"
    else:
        more = "ask the project's admin which apps it has, or look at its web site"
    return AppNotFound.of(error, f"{error}; {more}")
