"""What holds for every template: of the checker, and of documents that are filled in."""

import re

from hypothesis import example, given, strategies as st

from boinc_gahp.templates.documents import read_result, read_workunit
from boinc_gahp.templates.filling import JobFile, fill_input, fill_output
from boinc_gahp.templates.reading import read_input_template, read_output_template
from boinc_gahp.templates.rules import check_template
from boinc_gahp.templates.types import Severity, TemplateError
from tests.templates.any_templates import input_templates, lines, output_templates
from tests.templates.good import INPUT, OUTPUT

# What text and markup are made of, and what tends to go wrong in it.
PIECES = [*re.findall(r"</?[^<>]*>|\n *|[^<>\n]+", INPUT + OUTPUT)]
PIECES += ["<", ">", "&", "&amp;", "&x;", "<!--", "-->", "<?", "?>", "<![CDATA[", "]]>"]
PIECES += ["<!DOCTYPE ", "[", "]>", "\r", "\0", "\ufeff", "\ud800", "é", "'", '"', "1e999"]
PIECES += ["<x a='1'/>", "<x a>"]
PIECES += ["<number>1</number>", "nan", "-1", "99999999999999999999", "<templates>", "<gzip/>"]
soups = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=40).map("".join)


@st.composite
def damaged(draw):
    """A good template in which a stretch is replaced by something else."""
    text = draw(st.sampled_from([INPUT, OUTPUT, INPUT + OUTPUT]))
    begin = draw(st.integers(0, len(text)))
    end = draw(st.integers(begin, min(begin + 60, len(text))))
    return text[:begin] + draw(soups) + text[end:]


def refused(text):
    """Why none of the readers takes a text; () if one does."""
    codes = []
    for read in (read_input_template, read_output_template):
        try:
            read(text)
        except TemplateError as error:
            codes.append(error.problems[0].code)
        else:
            return ()
    return tuple(codes)


@given(st.text() | soups | damaged())
@example("")
@example("<?xml")
@example("<a>\ud800</a>")
@example("<input_template><workunit>&lt;</workunit></input_template>")
def test_any_text_can_be_checked(text):
    problems = check_template(text)
    assert [p.line for p in problems] == sorted(p.line for p in problems)
    assert all(1 <= p.line <= text.count("\n") + 1 and p.code and p.text for p in problems)
    if all(p.severity is Severity.WARNING for p in problems):
        assert refused(text) == ()


def staged(name, gzipped_nbytes=None):
    nbytes = len(name)
    return JobFile(name, nbytes, f"{nbytes:032x}", (f"http://h/d/{name}",), gzipped_nbytes)


@given(input_templates, st.data())
def test_what_is_filled_into_a_workunit_comes_back(template, data):
    unnamed = [f for f in template.files if f.physical_name is None and not f.generate_locally]
    given_files = [
        staged(data.draw(lines), data.draw(st.none() | st.integers(1, 10**12))) for _ in unnamed
    ]
    document = read_workunit(fill_input(template, given_files, staged=staged))
    assert document.command_line == (template.command_line or "")
    own = iter(given_files)
    for info, file in zip(template.files, document.files, strict=True):
        job_file = next(own) if info in unnamed else None
        if info.constant:
            job_file = staged(info.physical_name or "")
        for flag in ("open_name", "copy_file", "sticky", "no_delete", "report_on_rpc"):
            assert getattr(file, flag) == getattr(info, flag), flag
        assert file.generated_locally == info.generate_locally
        name = job_file.physical_name if job_file else info.physical_name or info.open_name
        assert file.name == name
        if info.remote:
            urls = () if info.generate_locally else info.urls
            assert file.urls == tuple(f"{url}{name}" for url in urls)
            assert (file.md5_cksum, file.nbytes) == (info.md5_cksum, info.nbytes)
        elif job_file is not None:
            assert file.urls == job_file.urls
            assert (file.md5_cksum, file.nbytes) == (job_file.md5, job_file.nbytes)
        if file.gzipped_urls:
            assert info.gzip
            assert file.gzipped_urls == tuple(f"{url}.gz" for url in file.urls)


@given(output_templates, lines)
def test_what_is_filled_into_a_result_comes_back(template, name):
    files = read_result(fill_output(template, name, "http://h/up?a&b", "r1"))
    for number, (info, file) in enumerate(zip(template.files, files, strict=True)):
        assert file.name == f"{name}_r1_{number}"
        for field in file.__dataclass_fields__:
            if field not in ("name", "urls", "line"):
                assert getattr(file, field) == getattr(info, field), field
        assert [url if url != "http://h/up?a&b" else "<UPLOAD_URL/>" for url in file.urls] == [
            *info.urls
        ]
