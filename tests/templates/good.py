"""Templates without anything to complain of, and pieces of them; those of recorded replies."""

import re
from dataclasses import replace
from pathlib import Path

from boinc_gahp.templates.reading import read_input_template
from boinc_gahp.templates.types import InputFileInfo, OutputFileInfo, OutputTemplate

INPUT = """<input_template>
    <file_info>
        <no_delete/>
    </file_info>
    <workunit>
        <file_ref>
            <open_name>in</open_name>
            <copy_file/>
        </file_ref>
        <rsc_fpops_est>1e12</rsc_fpops_est>
        <rsc_fpops_bound>1e14</rsc_fpops_bound>
        <rsc_memory_bound>1e8</rsc_memory_bound>
        <rsc_disk_bound>1e9</rsc_disk_bound>
        <delay_bound>86400</delay_bound>
        <min_quorum>2</min_quorum>
        <target_nresults>2</target_nresults>
        <max_error_results>3</max_error_results>
        <max_total_results>10</max_total_results>
        <max_success_results>6</max_success_results>
    </workunit>
</input_template>
"""
OUTPUT = """<output_template>
    <file_info>
        <name><OUTFILE_0/></name>
        <generated_locally/>
        <upload_when_present/>
        <max_nbytes>32768</max_nbytes>
        <url><UPLOAD_URL/></url>
        <no_delete/>
    </file_info>
    <result>
        <file_ref>
            <file_name><OUTFILE_0/></file_name>
            <open_name>out</open_name>
            <no_delete/>
        </file_ref>
    </result>
</output_template>
"""
MD5 = "0123456789abcdef0123456789abcdef"
REMOTE = f"""<url>http://mirror.example.edu/files/</url>
        <md5_cksum>{MD5}</md5_cksum>
        <nbytes>1000</nbytes>
"""
CONSTANT = "<physical_name>constant.dat</physical_name>\n"

INFO, BODY = INPUT.split("<input_template>\n")[1].split("    </file_info>\n")
INFO += "    </file_info>\n"
BODY = BODY.split("</input_template>")[0]
OUTPUT_INFO, OUTPUT_BODY = OUTPUT.split("<output_template>\n")[1].split("    </file_info>\n")
OUTPUT_INFO += "    </file_info>\n"
OUTPUT_BODY = OUTPUT_BODY.split("</output_template>")[0]
#: What stands in a template with one file, and what stands there with two.
_REF = BODY.split("    <workunit>\n")[1].split("        <rsc_fpops_est>")[0]
TWO_FILES = (
    f"{INFO}    <workunit>\n{_REF}",
    f"{INFO}{INFO}    <workunit>\n{_REF}{_REF.replace('>in<', '>in2<')}",
)
_OUTPUT_REF = OUTPUT_BODY.split("    <result>\n")[1].split("    </result>")[0]
TWO_OUTPUTS = (
    f"{OUTPUT_INFO}    <result>\n{_OUTPUT_REF}",
    f"{OUTPUT_INFO}{OUTPUT_INFO.replace('_0/', '_1/')}    <result>\n{_OUTPUT_REF}"
    f"{_OUTPUT_REF.replace('_0/', '_1/').replace('out', 'out2')}",
)


def many_inputs(count):
    files = (InputFileInfo(f"in{number}", no_delete=True) for number in range(count))
    return replace(read_input_template(INPUT), files=tuple(files))


def many_outputs(count):
    return OutputTemplate(
        tuple(
            OutputFileInfo(f"out{n}", f"<OUTFILE_{n}/>", max_nbytes=1e6, no_delete=True)
            for n in range(count)
        )
    )


def recorded(case):
    """Return what a real project replied to ``get_templates``."""
    wire = Path(__file__).parent.parent / "contract" / "wire"
    reply = (wire / f"get_templates__{case}.rep.xml").read_text("utf-8")
    match = re.search("<templates>(.*)</templates>", reply, re.DOTALL)
    assert match
    return match[1]
