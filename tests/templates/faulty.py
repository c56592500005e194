"""Templates that have one finding of the checker each, and the same ones repaired."""

from __future__ import annotations

import re
from dataclasses import dataclass

from boinc_gahp.templates import Severity, write_input_template, write_output_template
from tests.templates.good import (
    BODY,
    CONSTANT,
    INFO,
    INPUT,
    MD5,
    OUTPUT,
    OUTPUT_BODY,
    OUTPUT_INFO,
    REMOTE,
    TWO_FILES,
    TWO_OUTPUTS,
    many_inputs,
    many_outputs,
)


@dataclass(frozen=True)
class Case:
    """A change to a good template that makes a finding, and one that mends it again."""

    code: str
    severity: Severity
    line: int
    good: str
    old: str
    new: str
    mended: str | None = None
    """What to put in the place of ``new``; None: ``old``, as it was."""
    words: str = ""

    @property
    def broken(self) -> str:
        assert self.old in self.good
        return self.good.replace(self.old, self.new, 1)

    @property
    def repaired(self) -> str:
        return self.good.replace(self.old, self.old if self.mended is None else self.mended, 1)


E, W = Severity.ERROR, Severity.WARNING
NO_DELETE = "        <no_delete/>\n"
QUORUM = "<min_quorum>2</min_quorum>"
TARGET = "<target_nresults>2</target_nresults>"
OPEN_NAME = "<open_name>in</open_name>"
COPY = "            <copy_file/>\n"

CASES = {
    "tag not closed": Case("malformed", E, 6, INPUT, "        </file_ref>\n", "",
        words="<file_ref> is not closed"),
    "wrong closing tag": Case("malformed", E, 7, INPUT, "in</open_name>", "in</openname>",
        words="expected </open_name>"),
    "closing tag without one that opens": Case("malformed", E, 19, INPUT, "</input_template>",
        "</input_template>\n</x>", words="nothing"),
    "end is missing": Case("malformed", E, 1, OUTPUT, "</output_template>\n", "",
        words="before the end: expected"),
    "bare ampersand": Case("malformed", E, 7, INPUT, ">in<", ">a&b<", words="expected &amp;"),
    "bare less-than": Case("malformed", E, 7, INPUT, ">in<", ">a< b<", words="expected &lt;"),
    "endless comment": Case("malformed", E, 1, INPUT, "<input_template>", "<!--",
        words="expected -->"),
    "attribute without quotes": Case("malformed", E, 2, INPUT, "<file_info>", "<file_info a=b>",
        words="this is not XML"),
    "empty file": Case("no-template", E, 1, INPUT, INPUT, "", words="expected XML elements"),
    "another document": Case("no-template", E, 1, INPUT, INPUT, "<templates/>\n",
        words="<output_template>"),
    "too long": Case("too-long", E, 1, INPUT, "in<", f"{'x' * (1 << 20)}<",
        words="expected at most"),
    "two input templates": Case("second-template", E, 19, INPUT, INPUT, INPUT * 2,
        words="a second input template"),
    "no workunit": Case("no-body", E, 1, INPUT, INPUT, "<input_template>\n</input_template>\n",
        words="<workunit>"),
    "second workunit": Case("second-body", E, 18, INPUT, "</input_template>",
        "<workunit>\n</workunit>\n</input_template>"),
    "counts of files": Case("file-count", E, 8, INPUT, "    <workunit>",
        f"    <file_info>\n{NO_DELETE}    </file_info>\n    <workunit>",
        words="2 <file_info> but 1 <file_ref>"),
    "no open name": Case("no-open-name", E, 6, INPUT, OPEN_NAME, ""),
    "open name used twice": Case("duplicate-open-name", E, 13, INPUT, TWO_FILES[0],
        TWO_FILES[1].replace("in2", "in"), mended=TWO_FILES[1]),
    "no flag": Case("bad-flag", E, 8, INPUT, "<copy_file/>", "<copy_file>yes</copy_file>"),
    "no number": Case("bad-number", E, 10, INPUT, "1e12", "1e12 flops"),
    "no whole number": Case("bad-number", E, 15, INPUT, QUORUM, "<min_quorum>1.5</min_quorum>"),
    "no name": Case("no-name", E, 2, OUTPUT, "        <name><OUTFILE_0/></name>\n", ""),
    "name twice": Case("duplicate-name", E, 10, OUTPUT, TWO_OUTPUTS[0],
        TWO_OUTPUTS[1].replace("_1/", "_0/"), mended=TWO_OUTPUTS[1]),
    "name of no file": Case("unknown-file-name", E, 11, OUTPUT, "<file_name><OUTFILE_0/>",
        "<file_name><OUTFILE_1/>"),
    "numbers with a gap": Case("file-order", E, 10, OUTPUT, OUTPUT, OUTPUT.replace("_0/", "_9/")),
    "old numbers out of order": Case("file-order", E, 6, INPUT, OPEN_NAME,
        f"<file_number>1</file_number>\n{OPEN_NAME}"),
    "remote file without MD5": Case("remote-incomplete", E, 2, INPUT, NO_DELETE,
        "<url>http://mirror/</url>\n", mended=REMOTE),
    "remote file without URL": Case("remote-incomplete", E, 2, INPUT, NO_DELETE,
        f"<md5_cksum>{MD5}</md5_cksum>\n", mended=REMOTE),
    "no MD5": Case("bad-md5", E, 2, INPUT, NO_DELETE, REMOTE.replace(MD5, "cafe"), mended=REMOTE,
        words="cafe"),
    "URL of no directory": Case("url-without-slash", W, 2, INPUT, NO_DELETE,
        REMOTE.replace("files/", "f"), mended=REMOTE),
    "constant and remote": Case("constant-and-remote", W, 2, INPUT, NO_DELETE,
        f"{CONSTANT}{REMOTE}", mended=REMOTE),
    "generated and remote": Case("generated-and-remote", W, 2, INPUT, NO_DELETE,
        f"{REMOTE}<generate_locally/>\n", mended=REMOTE),
    "files larger than the disk bound": Case("disk-below-files", W, 15, INPUT, NO_DELETE,
        REMOTE.replace("1000", "2000000000"), mended=REMOTE, words="2,000,000,000"),
    "zero": Case("zero", E, 14, INPUT, "<delay_bound>86400", "<delay_bound>0",
        words="no job can be made"),
    "quorum over the number of instances": Case("counts", E, 15, INPUT, QUORUM,
        "<min_quorum>3</min_quorum>", words="<min_quorum> 3 is more"),
    "more instances than successes allowed": Case("counts", E, 16, INPUT, TARGET,
        "<target_nresults>7</target_nresults>",
        mended="<target_nresults>7</target_nresults>\n<max_success_results>7</max_success_results>",
        words="<max_success_results> 6 by default"),
    "more errors than instances": Case("counts", E, 17, INPUT, TARGET,
        f"{TARGET}\n<max_error_results>11</max_error_results>",
        words="<max_total_results> 10 by default"),
    "nothing about the size": Case("default-bounds", W, 5, INPUT,
        "        <delay_bound>86400</delay_bound>\n", "", words="BOINC uses 604800"),
    "bound below the estimate": Case("bound-below-estimate", W, 11, INPUT, "1e14", "1e11",
        words="clients abort"),
    "memory in megabytes": Case("small-bound", W, 12, INPUT, "1e8", "500", words="megabytes"),
    "unknown element": Case("unknown-element", W, 9, INPUT, COPY, f"{COPY}<new_flag/>\n",
        words="leave it out"),
    "misspelt element": Case("unknown-element", W, 10, INPUT, "rsc_fpops_est>1e12</rsc_fpops_est",
        "rsc_flops_est>1e12</rsc_flops_est", words="was <rsc_fpops_est> meant?"),
    "misspelt root": Case("unknown-element", W, 1, OUTPUT, OUTPUT,
        OUTPUT.replace("output_", "ouput_"), words="outside of any template"),
    "element elsewhere": Case("misplaced-element", W, 4, INPUT, NO_DELETE,
        f"{NO_DELETE}<copy_file/>\n", words="<file_ref>"),
    "element twice": Case("repeated-element", W, 9, INPUT, COPY,
        f"{COPY}            <copy_file/>\n", words="a second"),
    "elements out of order": Case("element-order", W, 4, INPUT, NO_DELETE,
        f"{NO_DELETE}        <sticky/>\n", mended=f"        <sticky/>\n{NO_DELETE}",
        words="<sticky> after <no_delete>"),
    "file after the workunit": Case("file-info-late", E, 15, INPUT, INPUT,
        f"<input_template>\n{BODY}{INFO}</input_template>\n"),
    "file after the result": Case("file-info-late", W, 9, OUTPUT, OUTPUT,
        f"<output_template>\n{OUTPUT_BODY}{OUTPUT_INFO}</output_template>\n"),
    "text between elements": Case("stray-text", W, 2, INPUT, NO_DELETE, f"no_delete\n{NO_DELETE}",
        words="'no_delete'"),
    "old number": Case("deprecated", W, 3, INPUT, NO_DELETE, f"<number>0</number>\n{NO_DELETE}",
        words="ignores it"),
    "two elements in a line": Case("one-per-line", W, 7, INPUT, f"{OPEN_NAME}\n", OPEN_NAME,
        words="more than one element"),
    "two tags in a line": Case("one-per-line", W, 5, INPUT, "<workunit>\n", "<workunit>"),
    "element over several lines": Case("one-per-line", W, 7, INPUT, ">in<", ">\nin\n<",
        words="on several lines"),
    "several roots": Case("not-one-document", W, 4, INPUT, INPUT, INFO + BODY,
        words="around all of it"),
    "declaration not at the beginning": Case("not-one-document", W, 2, INPUT, INPUT,
        f"<!-- mine -->\n<?xml version='1.0'?>\n{INPUT}",
        mended=f"<?xml version='1.0'?>\n<!-- mine -->\n{INPUT}", words="the very start"),
    "input that is deleted": Case("no-delete-input", W, 2, INPUT, NO_DELETE, "", words="batches"),
    "no_delete with a value": Case("no-delete-form", W, 3, INPUT, "<no_delete/>",
        "<no_delete>1</no_delete>"),
    "gzip of a staged file": Case("gzip-without-size", W, 2, INPUT, NO_DELETE,
        f"<gzip/>\n{NO_DELETE}",
        mended=f"<gzip/>\n<gzipped_nbytes>9</gzipped_nbytes>\n{NO_DELETE}", words="--gzip"),
    "gzip of a remote file": Case("gzip-without-size", E, 2, INPUT, NO_DELETE,
        f"<gzip/>\n{REMOTE}", mended=REMOTE),
    "gzipped size without gzip": Case("size-without-gzip", W, 2, INPUT, NO_DELETE,
        f"<gzipped_nbytes>9</gzipped_nbytes>\n{NO_DELETE}"),
    "report of a file that does not stay": Case("report-without-sticky", W, 2, INPUT, NO_DELETE,
        f"{NO_DELETE}<report_on_rpc/>\n", mended=f"<sticky/>\n{NO_DELETE}<report_on_rpc/>\n"),
    "input outside of the slot": Case("unsafe-open-name", W, 6, INPUT, ">in<", ">../in<"),
    "output outside of the slot": Case("unsafe-open-name", W, 11, OUTPUT, ">out<", ">C:\\out<"),
    "open name that clients unescape": Case("open-name-characters", W, 6, INPUT, ">in<",
        ">a&lt;b<", words="'a<b' holds a <"),
    "open name that ends SQL": Case("open-name-characters", W, 11, OUTPUT, ">out<", ">it's<"),
    "output not generated": Case("not-generated-locally", W, 2, OUTPUT,
        "        <generated_locally/>\n", ""),
    "output not uploaded": Case("not-uploaded", W, 2, OUTPUT, "        <upload_when_present/>\n",
        ""),
    "output of any size": Case("no-max-nbytes", W, 2, OUTPUT,
        "        <max_nbytes>32768</max_nbytes>\n", ""),
    "output of no size": Case("no-max-nbytes", W, 2, OUTPUT, "32768", "0"),
    "nowhere to upload to": Case("no-url", E, 2, OUTPUT, "        <url><UPLOAD_URL/></url>\n", ""),
    "one name for all instances": Case("fixed-name", W, 2, OUTPUT, OUTPUT,
        OUTPUT.replace("<OUTFILE_0/>", "out.dat")),
    "output that is deleted": Case("no-delete-output", W, 2, OUTPUT, OUTPUT,
        re.sub(" *<no_delete/>\n", "", OUTPUT)),
    "no_delete where the file deleter does not look": Case("no-delete-place", W, 2, OUTPUT,
        NO_DELETE, "", words="today's file deleter"),
    "too many files": Case("document-size", E, 1202, INPUT, INPUT,
        write_input_template(many_inputs(400)), words="even with the shortest names"),
    "many files": Case("document-size", W, 302, INPUT, INPUT,
        write_input_template(many_inputs(100)),
        words="with file names of 255 characters this makes a workunit.xml_doc of "),
    "many outputs": Case("document-size", W, 562, OUTPUT, OUTPUT,
        write_output_template(many_outputs(70)),
        words="with result names of 191 characters this makes a result.xml_doc_in of "),
}  # fmt: skip
