"""Templates of all kinds, and the texts that can be in them."""

from hypothesis import strategies as st

from boinc_gahp.templates.types import (
    UPLOAD_URL,
    InputFileInfo,
    InputTemplate,
    OutputFileInfo,
    OutputTemplate,
)

# One line of text without white space at its ends: what a template can hold.
lines = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1).map(
    lambda text: text.replace("<", "&lt") if text.startswith("<") else text
)
_maybe = st.none() | lines
_numbers = st.none() | st.floats(0, 1e300, allow_nan=False)
_counts = st.none() | st.integers(0, 10**12)


def _all(names, strategy):
    return dict.fromkeys(names.split(), strategy)


_INPUT = {
    "open_name": lines,
    "gzipped_nbytes": _counts,
    "physical_name": _maybe,
    **_all("copy_file gzip sticky no_delete report_on_rpc generate_locally", st.booleans()),
}
_urls = st.lists(lines, min_size=1, max_size=2).map(tuple)
_remote = {"urls": _urls, "md5_cksum": lines, "nbytes": st.integers(0, 10**15)}
_inputs = st.builds(InputFileInfo, **_INPUT) | st.builds(InputFileInfo, **_INPUT, **_remote)
input_templates = st.builds(
    InputTemplate,
    files=st.lists(_inputs, unique_by=lambda file: file.open_name, max_size=4).map(tuple),
    command_line=_maybe,
    size_class=st.none() | st.integers(-1, 10),
    priority=st.none() | st.integers(-1000, 1000),
    **_all("rsc_fpops_est rsc_fpops_bound rsc_memory_bound rsc_disk_bound", _numbers),
    **_all("rsc_bandwidth_bound delay_bound", _numbers),
    **_all("min_quorum target_nresults", st.none() | st.integers(1, 10**6)),
    **_all("max_error_results max_total_results max_success_results batch", _counts),
)

_OUTPUT = {
    "max_nbytes": _numbers,
    "urls": st.lists(lines | st.just(UPLOAD_URL), min_size=1, max_size=2).map(tuple),
    **_all("generated_locally upload_when_present gzip_when_done copy_file", st.booleans()),
    **_all("optional no_validate no_delete sticky", st.booleans()),
}


@st.composite
def _outputs(draw):
    names = draw(st.lists(lines, unique=True, max_size=4))
    return tuple(
        draw(st.builds(OutputFileInfo, st.just(name), st.just(f"<OUTFILE_{number}/>"), **_OUTPUT))
        for number, name in enumerate(names)
    )


output_templates = st.builds(OutputTemplate, _outputs(), st.booleans())
