"""The apps that every new local project has, and their templates.

All templates have ``no_delete`` on inputs and outputs: otherwise the file deleter would remove
shared inputs as soon as the first job is assimilated (``back-end.rst``, "File deleter").
"""

from __future__ import annotations

from dataclasses import dataclass

from boinc_gahp.templates.types import InputFileInfo, InputTemplate, OutputFileInfo, OutputTemplate


@dataclass(frozen=True, slots=True)
class SuppliedApp:
    """An app: its name, the command that a volunteer starts, and its templates."""

    name: str
    description: str
    command: tuple[str, ...]
    input_template: InputTemplate
    output_template: OutputTemplate


def input_template(*open_names: str) -> InputTemplate:
    """Return a template with the bounds of the recorded ones (``wire/get_templates__*``)."""
    return InputTemplate(
        files=tuple(
            InputFileInfo(open_name=name, copy_file=True, no_delete=True) for name in open_names
        ),
        rsc_fpops_est=1e9,
        rsc_fpops_bound=1e15,
        rsc_memory_bound=5e7,
        rsc_disk_bound=1e8,
        delay_bound=86400.0,
        min_quorum=1,
        target_nresults=1,
        max_error_results=2,
        max_total_results=5,
        max_success_results=3,
    )


def output_template(
    *open_names: str,
    optional: tuple[str, ...] = (),
    max_nbytes: float = 5e6,
    gzip_when_done: bool = False,
) -> OutputTemplate:
    """Return a template for outputs of at most ``max_nbytes`` each."""
    return OutputTemplate(
        files=tuple(
            OutputFileInfo(
                open_name=name,
                name=f"<OUTFILE_{number}/>",
                max_nbytes=max_nbytes,
                gzip_when_done=gzip_when_done,
                copy_file=True,
                optional=name in optional,
                no_delete=True,
            )
            for number, name in enumerate(open_names)
        )
    )


#: The program of a container app; hosts have it (:mod:`.hosts.docker_wrapper`).
WRAPPER = ("docker_wrapper",)


def _program(name: str, *arguments: str) -> tuple[str, ...]:
    # -I -S: nothing from this Python's environment is needed, and it starts faster.
    return ("{python}", "-I", "-S", f"{{apps}}/{name}.py", *arguments)


SUPPLIED = (
    SuppliedApp(
        "uppercase",
        "one text in capitals",
        _program("uppercase"),
        input_template("in"),
        output_template("out"),
    ),
    SuppliedApp(
        "multi",
        "two inputs, three outputs, the last optional",
        _program("multi"),
        input_template("in0", "in1"),
        output_template("out0", "out1", "out2", optional=("out2",)),
    ),
    SuppliedApp(
        "optmid",
        "three outputs, the middle one optional",
        _program("multi", "--middle-is-optional"),
        input_template("in"),
        output_template("out0", "out1", "out2", optional=("out1",)),
    ),
    SuppliedApp(
        "zipped",
        "outputs packed into one zip",
        _program("zipped"),
        input_template("in"),
        output_template("out.zip"),
    ),
    SuppliedApp(
        "gzipped",
        "one text in capitals, compressed by the client",
        _program("uppercase"),
        input_template("in"),
        output_template("out", gzip_when_done=True),
    ),
)
