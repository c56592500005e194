"""Templates that have one finding of the checker each, and the same ones repaired."""

import re
from dataclasses import dataclass

from boinc_gahp.templates.types import Severity
from boinc_gahp.templates.writing import write_input_template, write_output_template
from tests.templates.good import (
    BODY,
    INFO,
    INPUT,
    OUTPUT,
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
    def broken(self):
        assert self.old in self.good
        return self.good.replace(self.old, self.new, 1)

    @property
    def repaired(self):
        return self.good.replace(self.old, self.old if self.mended is None else self.mended, 1)


E, W = Severity.ERROR, Severity.WARNING
NO_DELETE = "        <no_delete/>\n"
QUORUM = "<min_quorum>2</min_quorum>"
TARGET = "<target_nresults>2</target_nresults>"
ERRORS = "<max_error_results>3</max_error_results>"
TOTAL = "<max_total_results>10</max_total_results>"
SUCCESS = "<max_success_results>6</max_success_results>"
OPEN_NAME = "<open_name>in</open_name>"

CASES = {
    "tag not closed": Case("malformed", E, 19, INPUT, "        </file_ref>\n", "",
        words="file_ref"),
    "bare ampersand": Case("malformed", E, 7, INPUT, ">in<", ">a&b<"),
    "empty file": Case("no-template", E, 1, INPUT, INPUT, "", words="expected XML elements"),
    "another document": Case("no-template", E, 1, INPUT, INPUT, "<templates/>\n",
        words="<output_template>"),
    "too long": Case("too-long", E, 1, INPUT, "in<", f"{'x' * (1 << 20)}<",
        words="expected at most"),
    "two input templates": Case("second-template", E, 22, INPUT, INPUT, INPUT * 2,
        words="a second one"),
    "no workunit": Case("no-body", E, 1, INPUT, INPUT, "<input_template>\n</input_template>\n",
        words="<workunit>"),
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
    "remote file without MD5": Case("remote-incomplete", E, 2, INPUT, NO_DELETE,
        "<url>http://mirror/</url>\n", mended=REMOTE),
    "zero": Case("zero", E, 5, INPUT, "<delay_bound>86400", "<delay_bound>0",
        words="<delay_bound> is 0"),
    "quorum over the number of instances": Case("counts", E, 5, INPUT, QUORUM,
        "<min_quorum>3</min_quorum>", words="<min_quorum> 3 is more than <target_nresults> 2"),
    "more errors than instances": Case("counts", E, 5, INPUT, ERRORS,
        "<max_error_results>11</max_error_results>", words="<max_total_results> 10"),
    "more successes than the default number of instances": Case("counts", E, 5, INPUT, TOTAL, "",
        words="<max_success_results> 6 is more than <max_total_results> 2"),
    "one attempt": Case("one-attempt", W, 5, INPUT, f"{ERRORS}\n        {TOTAL}\n        {SUCCESS}",
        "", words="each job gets one attempt"),
    "bound below the estimate": Case("bound-below-estimate", W, 5, INPUT, "1e14", "1e11",
        words="clients abort"),
    "several roots": Case("not-one-document", W, 4, INPUT, INPUT, INFO + BODY,
        words="into one <input_template>"),
    "declaration not at the beginning": Case("not-one-document", W, 2, INPUT, INPUT,
        f"<!-- mine -->\n<?xml version='1.0'?>\n{INPUT}",
        mended=f"<?xml version='1.0'?>\n<!-- mine -->\n{INPUT}"),
    "input that is deleted": Case("no-delete-input", W, 2, INPUT, NO_DELETE, "",
        words="lacks <no_delete/> for in:"),
    "gzip of a staged file": Case("gzip-without-size", W, 2, INPUT, NO_DELETE,
        f"<gzip/>\n{NO_DELETE}",
        mended=f"<gzip/>\n<gzipped_nbytes>9</gzipped_nbytes>\n{NO_DELETE}", words="--gzip"),
    "input outside of the slot": Case("open-name", E, 2, INPUT, ">in<", ">../in<"),
    "output outside of the slot": Case("open-name", E, 2, OUTPUT, ">out<", ">C:/out<"),
    "open name that clients unescape": Case("open-name", E, 2, INPUT, ">in<", ">a&lt;b<",
        words="a<b"),
    "open name that ends SQL": Case("open-name", E, 2, OUTPUT, ">out<", ">it's<"),
    "nowhere to upload to": Case("no-url", E, 2, OUTPUT, "        <url><UPLOAD_URL/></url>\n", ""),
    "one name for all instances": Case("fixed-name", W, 2, OUTPUT, OUTPUT,
        OUTPUT.replace("<OUTFILE_0/>", "out.dat")),
    "output of any size": Case("no-max-nbytes", W, 2, OUTPUT,
        "        <max_nbytes>32768</max_nbytes>\n", ""),
    "output that is deleted": Case("no-delete-output", W, 2, OUTPUT, OUTPUT,
        re.sub(" *<no_delete/>\n", "", OUTPUT)),
    "no_delete where the file deleter does not look": Case("no-delete-output", W, 2, OUTPUT,
        NO_DELETE, "", words="where the file deleter looks"),
    "output that clients download": Case("not-generated-locally", W, 2, OUTPUT,
        "        <generated_locally/>\n", ""),
    "text beside <result>": Case("result-line", E, 10, OUTPUT, "<result>\n", "<result>"),
    "many files": Case("document-size", W, 452, INPUT, INPUT,
        write_input_template(many_inputs(150)), words="with names of 42 characters it has "),
    "too many files": Case("document-size", E, 1202, INPUT, INPUT,
        write_input_template(many_inputs(400)), words="with names of 0 characters it has "),
    "many outputs": Case("document-size", W, 562, OUTPUT, OUTPUT,
        write_output_template(many_outputs(70)), words="with names of 191 characters it has "),
}  # fmt: skip
