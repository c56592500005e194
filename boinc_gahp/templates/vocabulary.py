"""The elements of a template as ``templates.rst`` lists them: their places and their order."""

from __future__ import annotations

from dataclasses import dataclass

from boinc_gahp.templates.types import InputTemplate
from boinc_gahp.text import nearest

#: The elements of a workunit that are numbers.
PARAMETERS = tuple(
    name
    for name in InputTemplate.__dataclass_fields__
    if name not in {"files", "command_line", "buda_app_name"}
)


@dataclass(frozen=True, slots=True)
class Children:
    """The content that an element may have.

    Attributes:
        ordered: in the documented order.
        free: known elements that have no place in that order.
        repeated: elements that may be there more than once.
    """

    ordered: tuple[str, ...]
    free: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()

    def __contains__(self, name: object) -> bool:
        return name in self.ordered or name in self.free


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The elements of one kind of template."""

    kind: str
    root: str
    body: str
    file_info: Children
    file_ref: Children
    in_body: Children

    def known_in(self, name: str) -> str:
        """Return the element that holds elements of this name; empty: there is none."""
        places = {
            "file_info": self.file_info,
            "file_ref": self.file_ref,
            self.body: self.in_body,
            self.root: Children(("file_info", self.body)),
        }
        return next((place for place, children in places.items() if name in children), "")

    def nearest(self, name: str) -> str:
        """Return the known name that is most similar to another; empty: none is similar."""
        known = [
            *self.file_info.ordered,
            *self.file_info.free,
            *self.file_ref.ordered,
            *self.in_body.ordered,
            *self.in_body.free,
            "file_info",
            self.body,
        ]
        return nearest(name, known, alike=0.7) or ""


INPUT = Vocabulary(
    kind="input template",
    root="input_template",
    body="workunit",
    file_info=Children(
        (
            "gzip",
            "gzipped_nbytes",
            "sticky",
            "no_delete",
            "report_on_rpc",
            "physical_name",
            "url",
            "md5_cksum",
            "nbytes",
        ),
        # generated_locally is the clients' name for it; old templates have number.
        free=frozenset({"generate_locally", "generated_locally", "number"}),
        repeated=frozenset({"url"}),
    ),
    file_ref=Children(("open_name", "copy_file"), free=frozenset({"file_number"})),
    in_body=Children(
        (
            "file_ref",
            "command_line",
            "rsc_fpops_est",
            "rsc_fpops_bound",
            "rsc_memory_bound",
            "rsc_disk_bound",
            "delay_bound",
            "min_quorum",
            "target_nresults",
            "max_error_results",
            "max_total_results",
            "max_success_results",
            "size_class",
        ),
        free=frozenset(
            {"rsc_bandwidth_bound", "priority", "batch", "avg_ncpus", "flops", "buda_app_name"}
        ),
        repeated=frozenset({"file_ref"}),
    ),
)

OUTPUT = Vocabulary(
    kind="output template",
    root="output_template",
    body="result",
    file_info=Children(
        (
            "name",
            "generated_locally",
            "upload_when_present",
            "max_nbytes",
            "url",
            "gzip_when_done",
        ),
        # Clients keep a sticky file after its upload; the transitioner passes it on unchanged.
        free=frozenset({"no_delete", "sticky"}),
        repeated=frozenset({"url"}),
    ),
    file_ref=Children(
        ("file_name", "open_name", "copy_file", "optional", "no_validate", "no_delete")
    ),
    in_body=Children(("file_ref", "report_immediately"), repeated=frozenset({"file_ref"})),
)
