"""The templates of BOINC's JobTemplates and JobIn, with values in place of its letters."""

from boinc_gahp.templates.filling import JobFile, fill_input
from boinc_gahp.templates.reading import read_input_template, read_output_template
from boinc_gahp.templates.rules import check_template
from boinc_gahp.templates.types import (
    InputTemplate,
    OutputFileInfo,
    OutputTemplate,
    Severity,
)
from boinc_gahp.templates.writing import write_input_template
from tests.templates.good import MD5

INPUT = f"""<input_template>
    <file_info>
        <gzip/>
        <gzipped_nbytes> 1200 </gzipped_nbytes>
        <sticky/>
        <no_delete/>
        <report_on_rpc/>
    </file_info>
    <file_info>
        <no_delete/>
        <physical_name>image.vdi</physical_name>
    </file_info>
    <file_info>
        <url>http://mirror1.example.edu/files/</url>
        <url>http://mirror2.example.edu/</url>
        <md5_cksum>{MD5}</md5_cksum>
        <nbytes>1000000</nbytes>
    </file_info>
    <file_info>
        <generate_locally/>
    </file_info>
    <workunit>
        <file_ref>
            <open_name>NAME</open_name>
            <copy_file/>
        </file_ref>
        <file_ref>
            <open_name>vm_image.vdi</open_name>
        </file_ref>
        <file_ref>
            <open_name>atmosphere</open_name>
        </file_ref>
        <file_ref>
            <open_name>cache</open_name>
        </file_ref>
        <command_line>-flags xyz</command_line>
        <rsc_fpops_est>1e12</rsc_fpops_est>
        <rsc_fpops_bound>1e14</rsc_fpops_bound>
        <rsc_memory_bound>1e8</rsc_memory_bound>
        <rsc_disk_bound>1e9</rsc_disk_bound>
        <rsc_bandwidth_bound>1e5</rsc_bandwidth_bound>
        <delay_bound>604800</delay_bound>
        <min_quorum>2</min_quorum>
        <target_nresults>3</target_nresults>
        <max_error_results>4</max_error_results>
        <max_total_results>9</max_total_results>
        <max_success_results>5</max_success_results>
        <size_class>1</size_class>
        <priority>7</priority>
        <batch>12</batch>
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
        <gzip_when_done/>
    </file_info>
    <result>
        <file_ref>
            <file_name><OUTFILE_0/></file_name>
            <open_name>result.sah</open_name>
            <copy_file>1</copy_file>
            <optional>0</optional>
            <no_validate>1</no_validate>
            <no_delete/>
        </file_ref>
        <report_immediately/>
    </result>
</output_template>
"""


def test_an_input_template_with_every_element_is_read_and_written_in_the_documented_order():
    """What is not read, or read as something else, is not written again as it was."""
    template = read_input_template(INPUT)
    written = write_input_template(template)
    assert written == INPUT.replace("> 1200 <", ">1200<").replace("1e12", "1000000000000").replace(
        "1e14", "100000000000000"
    ).replace("1e8", "100000000").replace("1e9", "1000000000").replace("1e5", "100000")
    assert [file.open_name for file in template.files if file.per_job] == ["NAME"]
    assert [file.open_name for file in template.files if file.constant] == ["vm_image.vdi"]
    assert [file.open_name for file in template.files if file.remote] == ["atmosphere"]
    assert check_template(written) == []


def test_an_output_template_with_every_element_is_read():
    file = OutputFileInfo(
        "result.sah",
        "<OUTFILE_0/>",
        max_nbytes=32768,
        gzip_when_done=True,
        copy_file=True,
        no_validate=True,
    )
    assert read_output_template(OUTPUT) == OutputTemplate((file,), report_immediately=True)


def test_the_examples_have_no_errors():
    assert check_template(INPUT) == []
    # The document has the flag in one place, and today's file deleter looks in another.
    [problem] = check_template(OUTPUT)
    assert (problem.code, problem.severity) == ("no-delete-output", Severity.WARNING)


def test_the_document_of_a_compressed_file_is_the_real_servers():
    """As create_work lays it out: what it only copies comes before what it finds out."""
    own = JobFile("in.txt", 9, "a" * 32, ("http://project/download/2b/in.txt",), 4)
    document = fill_input(InputTemplate(read_input_template(INPUT).files[:1]), [own])
    assert document.startswith(
        "<file_info>\n"
        "    <sticky/>\n"
        "    <no_delete/>\n"
        "    <report_on_rpc/>\n"
        "    <name>in.txt</name>\n"
        "    <url>http://project/download/2b/in.txt</url>\n"
        "    <gzipped_url>http://project/download/2b/in.txt.gz</gzipped_url>\n"
        "    <gzipped_nbytes>4</gzipped_nbytes>\n"
        f"    <md5_cksum>{'a' * 32}</md5_cksum>\n"
        "    <nbytes>9</nbytes>\n"
        "</file_info>\n"
    )
