"""What BOINC's docker_wrapper is told, and the engine's commands that it makes of it; no I/O.

Each command is a text for the host's shell, and is cut at 1,024 bytes, so the words of a job's
command line are evaluated there (``containers.rst``, "What the wrapper does").
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from boinc_gahp.client_exits import EXIT_SIGNAL
from boinc_gahp.localproject.errors import JobFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

#: A buffer of the wrapper's for one command, with the zero at its end.
_LONGEST = 1024


@dataclass(frozen=True, slots=True)
class Options:
    """The wrapper's own options; ``words`` are the others, for the container."""

    config: str = "job.toml"
    dockerfile: str = "Dockerfile"
    words: tuple[str, ...] = ()


def read_options(arguments: Sequence[str]) -> Options:
    """Read the wrapper's command line; an option without a value names no file."""
    named, words = {}, []
    left = iter(arguments)
    for word in left:
        if word in {"--config", "--dockerfile"}:
            named[word[2:]] = next(left, "(null)")
        elif word not in {"--verbose", "--sporadic"}:
            words.append(word)
    return Options(**named, words=tuple(words))


@dataclass(frozen=True, slots=True)
class Config:
    """The contents of ``job.toml``, without keys for graphics, GPUs, ports and more output."""

    workdir: str = "/app"
    image_name: str = ""
    build_args: str = ""
    create_args: str = ""
    mount: tuple[str, ...] = ()


def read_config(text: bytes) -> Config:
    """Read ``job.toml``; names that are not known are ignored.

    Raises:
        JobFailed: it is not TOML, or a value is of another type.
    """
    try:
        found = tomllib.loads(text.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise JobFailed(1, f"TOML error: {error}; can't parse config file") from error
    values: dict[str, Any] = {}
    for name, default in asdict(Config()).items():
        value = found.get(name)
        if value is None:
            continue
        members = value if type(value) is list else []
        if len({type(each) for each in members}) > 1:
            raise JobFailed(1, f"TOML error: the members of {name} are of different types")
        values[name] = tuple(members) if type(value) is list else value
        if type(values[name]) is not type(default) or any(
            type(each) is not str for each in members
        ):
            # Nothing catches the error of the reader: the real one aborts.
            raise JobFailed(EXIT_SIGNAL, f"the value of {name} is of a wrong type")
    return Config(**values)


@dataclass(frozen=True, slots=True)
class ContainerJob:
    """A job for the wrapper.

    Attributes:
        engine: ``podman`` or ``docker``.
        project: the project's directory on the host, as it stands in names.
        workunit, result: their names.
        ncpus: how many processors the client has reserved.
    """

    engine: str
    project: str
    workunit: str
    result: str
    ncpus: float = 1.0
    config: Config = field(default_factory=Config)
    options: Options = field(default_factory=Options)

    @property
    def container(self) -> str:
        """The container's name."""
        return f"boinc__{self.project}__{self.result}".lower()

    @property
    def image(self) -> str:
        """The image's name; the default one is the job's own."""
        return self.config.image_name or f"boinc__{self.project}__{self.workunit}".lower()

    def in_shell(self, command: str) -> str:
        """Return what the shell gets for one of the engine's commands."""
        return _cut(f"{self.engine} {command} 2>&1")

    def build(self) -> str:
        """Return the command that builds the image."""
        retry = "--retry 0" if self.engine == "podman" else ""
        text = f'build "." {retry} -t {self.image} -f {self.options.dockerfile} '
        return _cut(text + self.config.build_args)

    def create(self) -> str:
        """Return the command that creates the container; the slot is mounted in it."""
        config = self.config
        slot = f' -v "./":"{config.workdir}"'
        text = f"create --name {self.container} {slot} "
        if self.options.words:
            text += f' -e ARGS=" {" ".join(self.options.words)}"'
        text += "".join(f" -v {each}" for each in config.mount)
        if self.ncpus > 1:
            text += f" --cpus {self.ncpus:f}"
        if config.create_args:
            text += f" {config.create_args}"
        if self.engine == "podman":
            text += " --log-driver=k8s-file"
        return f"{text} {self.image}"


def _cut(command: str) -> str:
    return command.encode("utf-8", "surrogateescape")[: _LONGEST - 1].decode(
        "utf-8", "surrogateescape"
    )


def image_is_listed(listing: str, image: str) -> bool:
    """Whether the engine's list of images has one, as the wrapper looks for it.

    It looks for the name and a space. So an image whose name has a tag is never found.
    """
    return any(f"{image} " in line for line in listing.splitlines())
