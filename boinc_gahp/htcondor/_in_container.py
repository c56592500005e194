"""The part of a job's description that only a job in a container has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boinc_gahp.containers.image import read_image
from boinc_gahp.containers.rules import MAX_ERRORS
from boinc_gahp.containers.script import Program
from boinc_gahp.htcondor._files import go_to_one_file
from boinc_gahp.submit.container_jobs import ContainerJob, Tree
from boinc_gahp.submit.types import LocalFile

if TYPE_CHECKING:
    from boinc_gahp.htcondor._description import JobDescription


@dataclass(frozen=True, slots=True)
class InContainer:
    """What a job runs in a container, and how.

    Attributes:
        image: as :func:`~boinc_gahp.containers.image.read_image` takes it; a file has its absolute
            path.
        command: the program; see :class:`boinc_gahp.containers.script.Layout`.
        is_input: whether the job brings the program.
        environment: (name, value) pairs.
        stdin: name of the input that the program reads; None: nothing.
        trees: input directories: names in the job's directory, paths, and stamps.
        network: whether it may use the network.
        cpus: processors.
        quorum: results that have to agree.
        max_errors: how many errors are followed by another attempt.
        image_state: size in bytes and time of the last change in ns of the image's file, if it is
            in one.
    """

    image: str
    command: str
    is_input: bool = False
    environment: tuple[tuple[str, str], ...] = ()
    stdin: str | None = None
    trees: tuple[Tree, ...] = ()
    network: bool = False
    cpus: int = 1
    quorum: int = 1
    max_errors: int = MAX_ERRORS
    image_state: tuple[int, int] | None = None

    def to_values(self) -> dict[str, Any]:
        """Return the values that are not the default, for JSON."""
        values = {name: getattr(self, name) for name in self.__slots__}
        default = InContainer("", "")
        return {name: value for name, value in values.items() if value != getattr(default, name)}

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> InContainer:
        """Return what :meth:`to_values` wrote; raises TypeError for anything else."""
        values = dict(values)
        values["environment"] = tuple(
            (name, value) for name, value in values.pop("environment", ())
        )
        values["trees"] = tuple(Tree(*each) for each in values.pop("trees", ()))
        if "image_state" in values:
            values["image_state"] = tuple(values["image_state"])
        return cls(**values)


def _without_slashes(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return outputs without the / that means what is in a directory."""
    return None if names is None else tuple(dict.fromkeys(name.rstrip("/") for name in names))


def container_job(description: JobDescription) -> ContainerJob:
    """Return what a job in a container runs, for the engine.

    Raises:
        ValueError: the description is damaged.
    """
    inside = description.container
    if inside is None:
        raise ValueError("the job does not run in a container")
    image = read_image(inside.image)
    state = inside.image_state
    return ContainerJob(
        image=image,
        image_file=None if state is None else LocalFile(image.name, state),
        command=inside.command,
        is_input=inside.is_input,
        program=Program(description.args, inside.environment, inside.stdin),
        files=description.inputs,
        trees=inside.trees,
        outputs=_without_slashes(description.outputs),
        stdout=description.stdout is not None,
        stderr=description.stderr is not None,
        merged=go_to_one_file(description.stdout, description.stderr, description.iwd),
        network=inside.network,
        cpus=inside.cpus,
        quorum=inside.quorum,
        max_errors=inside.max_errors,
        output_bytes=description.parameters.by_element["rsc_disk_bound"] or 1e9,
    )
