"""Reads from a job's ad what runs in a container, described in ``gridmanager-batch.rst``.

Only for jobs of a project's ``container_app``. Some attributes only arrive if a transform of the
schedd copies them (``conf/``): without it, they count as not given.
"""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boinc_gahp.containers.image import read_image
from boinc_gahp.containers.job_files import is_open_name
from boinc_gahp.containers.rules import (
    OPTIONS,
    JobOptions,
    default_disk,
    is_variable,
    output_path,
    secret_names,
)
from boinc_gahp.containers.script import Program
from boinc_gahp.errors import StagingError
from boinc_gahp.fetch.placements import DEV_NULL
from boinc_gahp.htcondor._files import look_at_file, names_in, read_remote, refuse_url
from boinc_gahp.htcondor.attributes import AdRefused, show, whole
from boinc_gahp.submit.container_jobs import ContainerJob
from boinc_gahp.submit.generated_files import Member
from boinc_gahp.submit.trees import look
from boinc_gahp.submit.types import LocalFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from boinc_gahp.containers.image import Image
    from boinc_gahp.containers.rules import Option
    from boinc_gahp.htcondor._description import NamedFile
    from boinc_gahp.htcondor.attributes import Attributes
    from boinc_gahp.submit.types import RemoteFile

#: How an ad names an image; the first one wins.
_IMAGES = ("ContainerImage", "DockerImage")

#: Attributes of jobs that need what volunteers cannot have, and what these are for a person.
_CREDENTIALS = {
    "OAuthServicesNeeded": "use_oauth_services",
    "ScitokensFile": "use_scitokens",
    "x509userproxy": "x509userproxy",
    "SendCredential": "send_credential",
}


def image_of(attributes: Attributes) -> str | None:
    """Return the image that a job names, as it is written; None: it names none."""
    own: str | None = attributes.boinc("Image")
    if own is not None:
        return own
    found = (text for name in _IMAGES if (text := attributes.text(name)))
    return _image_among_inputs(attributes) or next(found, None)


def is_transferred(attributes: Attributes) -> bool | None:
    """Return whether the job brings its executable; None if the ad does not tell."""
    for name in ("TransferExecutable", "StageCmd"):
        value = attributes.get(name)
        if isinstance(value, bool):
            return value
    return None


def read_container(
    attributes: Attributes, iwd: str, image: str
) -> tuple[ContainerJob, tuple[NamedFile, ...]]:
    """Return what a job runs in a container, and its input files.

    The former has nothing of what an installed app's job has, too: arguments, files, outputs and
    the like. ``JobDescription.container_job`` adds it.

    Args:
        attributes: the ad.
        iwd: the job's directory.
        image: the image, as a person wrote it.

    Raises:
        AdRefused: the job cannot be done so; says what to change in a submit file.
    """
    _refuse_what_volunteers_lack(attributes)
    read, image_file = _image(image, iwd)
    command, executable = _program(attributes, iwd)
    stdin, files, trees = _inputs(attributes, iwd)
    if executable is not None:
        own = command.removeprefix("./")
        if own in files and files[own].path != executable.path:
            raise AdRefused(
                f"the executable and the input {show(files[own].path)} are two files of the name "
                f"{show(own)} in the job's directory: rename one"
            )
        files = {own: executable, **files}
    others = tuple(read_remote(attributes.given("RemoteFiles")))
    for name, _ in others:
        if name in files or not is_open_name(name):
            raise AdRefused(
                f"the remote file {show(name)} cannot have this name in the job's directory: "
                "rename it there, to letters and digits that no other input has"
            )
    inside = ContainerJob(
        image=read,
        image_file=image_file,
        command=command,
        is_input=executable is not None,
        program=Program(environment=tuple(_environment(attributes)), stdin=stdin),
        trees=tuple(trees),
        **{each.name: _asked(attributes, OPTIONS[each.name]) for each in fields(JobOptions)},
    )
    return inside, (*files.items(), *others)


def disk_bound(inside: ContainerJob, files: tuple[NamedFile, ...]) -> float:
    """Return the bytes that a job may use if it requests none: 1 GB beside its inputs."""
    inputs = sum(look(tree.path).nbytes for tree in inside.trees)
    inputs += sum(_nbytes(file) for _, file in files)
    return default_disk(inputs, _nbytes(inside.image_file))


def _nbytes(file: LocalFile | RemoteFile | None) -> int:
    return file.expected[0] if isinstance(file, LocalFile) and file.expected else 0


def read_container_outputs(text: str, remaps: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return the files and directories in ``transfer_output_files``.

    Of a directory with a / at its end, only what is in it is wanted. Others go to the job's
    directory under their base names, unless ``remaps`` send them elsewhere.
    """
    names: list[str] = []
    remapped = {name for name, _ in remaps}
    taken: dict[str, str] = {}
    for name in names_in(text):
        refuse_url("transfer_output_files", name)
        try:
            plain = output_path(name)
        except ValueError as error:
            raise AdRefused(f"transfer_output_files names {show(name)}, which {error}") from None
        names.append(plain + "/" * name.endswith("/"))
        base = Path(plain).name
        if name.endswith("/") or not remapped.isdisjoint({name, plain, base}):
            continue
        other = taken.setdefault(base, plain)
        if other != plain:
            raise AdRefused(
                f"transfer_output_files names {show(other)} and {show(plain)}, which would both "
                f"become {show(base)} in the job's directory: send one of them elsewhere with "
                "transfer_output_remaps"
            )
    return tuple(dict.fromkeys(names))


def _refuse_what_volunteers_lack(attributes: Attributes) -> None:
    for name, command in _CREDENTIALS.items():
        if attributes.get(name):
            raise AdRefused(
                f"the job needs credentials ({command}), which must not reach volunteers' "
                "computers: leave it out, or run the job elsewhere"
            )
    for name in ("InputTemplate", "OutputTemplate"):
        given = attributes.given(name)
        if given is not None:
            raise AdRefused(f"{given[0]} is for installed apps: a job in a container makes its own")


def _image(text: str, iwd: str) -> tuple[Image, LocalFile | None]:
    """Return an image with its complete name, and its file if it is in one."""
    try:
        image = read_image(text)
    except ValueError as error:
        raise AdRefused(f"the job's image: {error}") from None
    if image.source == "registry":
        return image, None
    file = look_at_file("the job's image", image.name, iwd)
    return replace(image, name=file.path), file


def _image_among_inputs(attributes: Attributes) -> str | None:
    """Return the entry of TransferInput that is the image; None if none is.

    condor_submit takes an image without ``docker://`` for a file: it adds it to TransferInput, and
    ContainerImage may be only its last part (``gridmanager-batch.rst``, "Jobs in containers").
    """
    image = attributes.text("ContainerImage")
    if image is None or image.startswith("docker://"):
        return None
    names = names_in(attributes.text("TransferInput"))
    if image in names:
        return image
    return next((each for each in reversed(names) if each.endswith(f"/{image}")), None)


def _program(attributes: Attributes, iwd: str) -> tuple[str, LocalFile | None]:
    """Return the program's command, and the executable if the job brings it.

    HTCondor puts the job's directory before a relative name that it does not transfer.
    """
    path = attributes.text("Cmd")
    if path is None or path.endswith("/"):  # the job's directory, and no name
        raise AdRefused(
            "the job has no executable; what an image runs by itself is not known here: name the "
            "program with executable = /path/in/the/image and transfer_executable = false"
        )
    transferred = is_transferred(attributes)
    if transferred is None:
        transferred = Path(path).exists()
    if transferred:
        file = look_at_file("executable", path, iwd)
        return f"./{Path(path).name}", file
    inside = Path(iwd)
    if Path(path).is_relative_to(inside):
        return str(Path(path).relative_to(inside)), None
    return path, None


def _inputs(
    attributes: Attributes, iwd: str
) -> tuple[str | None, dict[str, LocalFile], list[Member]]:
    """Return the name of the standard input, the input files by name, and the directories."""
    files: dict[str, LocalFile] = {}
    trees: list[Member] = []
    image = _image_among_inputs(attributes)
    names = names_in(attributes.text("TransferInput"))
    named = {os.path.normpath(os.path.join(iwd, name)) for name in names}  # noqa: PTH118
    for name in names:
        if name == image:
            continue
        path = Path(iwd, name)
        if name.endswith("/") or path.is_dir():
            follow_links = attributes.boinc("FollowLinks", default=False)
            trees.append(_tree(name, path, named, follow_links=follow_links))
        else:
            files[path.name] = look_at_file("transfer_input_files", name, iwd)
    stdin = attributes.text("In")
    if stdin in {None, "", DEV_NULL}:
        return None, files, trees
    file = look_at_file("input", str(stdin), iwd)
    name = Path(str(stdin)).name
    if name in files and files[name].path != file.path:
        name = f"_condor_stdin_{name}"
    files[name] = file
    return name, files, trees


def _tree(name: str, path: Path, named: Collection[str], *, follow_links: bool) -> Member:
    """Return a directory; with a / at its end, only what is in it goes to the job's directory."""
    refuse_url("transfer_input_files", name)
    try:
        found = look(str(path), follow_links=follow_links)
        found.check(named)
    except StagingError as error:
        raise AdRefused(f"transfer_input_files names {show(name)}: {error}") from None
    # The name of ".." is that of the directory which it is.
    own = os.path.basename(os.path.normpath(path))  # noqa: PTH119
    return Member("" if name.endswith("/") else own, str(path), found.stamp)


def _environment(attributes: Attributes) -> Iterator[tuple[str, str]]:
    """Yield the variables of the job's environment."""
    allowed = set(names_in(attributes.boinc("AllowEnvironment")))
    found = list(variables(attributes))
    for name, _ in found:
        if not is_variable(name):
            raise AdRefused(f"environment has the variable {show(name)}, which no program can have")
    secret = secret_names(name for name, _ in found)
    refused = [name for name in secret if name not in allowed]
    if refused:
        shown = ", ".join(map(show, refused))
        # With the names that the submit file allows already, so that the line can replace its own.
        raise AdRefused(
            f"environment has names that look like those of secrets ({shown}); volunteers can read "
            "the whole environment. Leave these out (getenv copies all variables), or, if they are "
            "no secrets: "
            f'+BoincAllowEnvironment = "{", ".join(secret)}" in the submit file (grid universe: '
            "+remote_BoincAllowEnvironment)"
        )
    yield from found


def variables(attributes: Attributes) -> Iterator[tuple[str, str]]:
    """Yield the variables of the environment that a submit file gives; raises AdRefused."""
    for entry in attributes.split("Environment", "Env", ";"):
        name, equals, value = entry.partition("=")
        if equals:
            yield name.strip(), value


def _asked(attributes: Attributes, what: Option) -> Any:
    """Return what a job asks for; processors are HTCondor's own request."""
    if what.attribute is not None:
        return attributes.boinc(what.attribute, what.default)
    cpus = attributes.get("RequestCpus")
    return what.default if cpus is None else whole(what.least, what.most, "RequestCpus", cpus)
