"""The project wants to keep the daemon busy for good, with an answer of a few bytes or a megabyte.

A pattern or a parser whose time grows faster than what it reads holds Python's lock all that time:
no other request is served, no line is answered, and only SIGKILL ends it. So every parser of what a
network sends is fed with each of its own delimiters, and its time has to grow as they do.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.bridge.stderr import unwrap
from boinc_gahp.errors import GahpError, shorten
from boinc_gahp.rpc import Project
from boinc_gahp.rpc.pages import is_page, page_text, page_title
from boinc_gahp.rpc.redact import Redactor
from boinc_gahp.rpc.replies import stderr_text, unescaped_words
from boinc_gahp.secret import Authenticator, hide_logins
from boinc_gahp.templates import TemplateError, check_template, read_templates
from boinc_gahp.templates.scanning import Scan
from tests.rpc.canned import inside, project
from tests.rpc.scripted import AUTHENTICATOR, Scripted, http, ok, raw

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 1 << 20
#: Twice as much may take as many times as long (a busy machine), and so many seconds more.
FACTOR, SLACK = 3.5, 0.05

#: What replies, pages, messages and templates are made of; `begin|repeat` has a beginning.
MARKUP = [
    *("<", ">", "&", "]", "]]>", "<?", "?>", "<?>", "<?xml?>", "<!--", "-->", "<!---->"),
    *("<![CDATA[", "<!DOCTYPE", "<!DOCTYPE>", "<!DOCTYPE[>", "<!DOCTYPE[]>", "[", "&lt;", "&#1;"),
    *("<x>", "</x>", "<x/>", "<x y=''>", "<x>|x", "<|a", "<a|-", "<a |b", "<a |/", "</a| "),
    *("<b>", "<b |a", "<br>", "<br />", "<br />|\n", "<br />\n<b>", "</b>"),
    *("<br />\n<b>Warning</b>: ", "<br />\n<b>Fatal error</b>: |<", "<br />\n<b>Warning</b>:| "),
    *("\nWarning: ", "\nPHP Fatal error: ", "\nWarning: | on line ", "\nWarning: | on line 1"),
    *("\nWarning: x on line |1", " on line <b>1</b>", "\nWarning: x on line 1\n"),
    *("<html>", "<html><title>", "<html>|<title>", "<html>|</title>", "<html>|<script>"),
    *("<html>|<style |", "<html>|<head></head", "<html>|<nav>x</nav>", "<html>|&#9", "<html>|<"),
    *(" ", "\n", "\t<", " \n", "a", "é", "\0", "\x7f", "\N{REPLACEMENT CHARACTER}", "a b "),
    *("<authenticator>", "&lt;authenticator&gt;", "auth_str=", "://", "://|a@", "://|:", "http://@"),
    *("'", '"', "\\", "no job ", "ERROR: ", "ERROR:| ", "Duplicate entry '", "md5_file: can't open /"),
]
NAMES = [
    *("<name>", "</name>", "<name>|a", "<name>|<", "<name>|&", "<job_name>", "<job_name>|</job_nam"),
    *("<error_msg>", "<stderr_out>", "<stderr_out>|&lt;", "<templates>", "<templates>|</template"),
    *("<job>", "</job>", "<job> |\n", "<job><job_name>|a", "<job><job_name>a</job_name>| "),
    *("<job><job_name>a</job_name><status>DONE</status></job>", "<batch_size>1</batch_size>"),
    *("<job><job_name>a</job_name><status>|D", "<job><job_name>a</job_name>", "<job><id>1</id>"),
    *("<error>", "<error>|<error_num>", "<error><error_msg>|a</error_msg><error_msg>"),
    *("<job><id>1</id><name>a</name><canonical_instance_id>0</canonical_instance_id>|"
      "<error>a</error>", "<job><id>1</id><name>a</name><canonical_instance_id>0"
      "</canonical_instance_id>|<exit_status>1</exit_status>", "<batch>", "<batch>|<id>1</id>"),
    *("<success>", "<success>1</success>", "<success>|1", "<server_time>|1"),
]
TEMPLATE = [
    *("<file_info>", "<file_info/>", "<file_info></file_info>", "<workunit>", "<workunit/>"),
    *("<result><file_ref>", "<result>|<file_ref/>", "<result><file_ref><open_name>|a"),
    *("<input_template>", "<input_template>|<file_info/>", "<input_template>|<x/>"),
    *("<input_template><workunit/>|<file_info/>", "<file_info>|<number>0</number>"),
    *("<input_template><workunit>|<min_quorum>1</min_quorum>", "<workunit><min_quorum>|0"),
    *("<output_template>|<file_info><name><OUTFILE_0/></name></file_info>", "<result>|<x>"),
]
STDERR = [
    *("<stderr_txt>", "<stderr_txt>| ", "<stderr_txt>|]]>", "<stderr_txt>|]]> ", "</stderr_txt>"),
    *("<core_client_version>", "<core_client_version>|7", "<![CDATA[", "<message>", "<![CDATA[| "),
    *("<message>|</message", "]]>", "]]> ", "<stderr_txt>|\n"),
]


def of(size: int, piece: str) -> str:
    beginning, bar, repeated = piece.rpartition("|")
    repeated = repeated or (bar and " ")
    return (beginning + repeated * (size // len(repeated) + 1))[:size]


def reply(ask: Callable[[Project], object], rpc: str, framed: str) -> Callable[[str], object]:
    def read(text: str) -> object:
        return ask(project(inside(rpc, framed.format(text) if framed else text)))

    return read


def query_batch2(body: bytes) -> object:
    return project(body).query_batch2(["b"])


def error_page(status: int) -> Callable[[str], object]:
    return lambda text: project(text.encode(), status=status).ping()


PARSERS: dict[str, tuple[Callable[[str], object], list[str]]] = {
    "a whole reply": (lambda text: query_batch2(text.encode()), MARKUP + NAMES),
    "a reply in small pieces": (
        lambda text: project(text.encode(), chunk=997).query_batch2(["b"]),
        MARKUP + NAMES,
    ),
    "inside of query_batch2": (
        lambda text: query_batch2(inside("query_batch2", text)), MARKUP + NAMES
    ),
    "inside of query_batch": (
        lambda text: project(inside("query_batch", text)).query_batch(batch_id=1), NAMES
    ),
    "inside of query_batch with details": (
        lambda text: list(project(inside("query_batch", text)).iter_jobs(1)), NAMES
    ),
    "inside of query_batches": (
        lambda text: project(inside("query_batches", text)).query_batches(), NAMES
    ),
    "inside of ping": (lambda text: project(inside("ping", text)).ping(), MARKUP + NAMES),
    "an error message": (
        lambda text: project(
            inside("ping", f"<error><error_num>-1</error_num><error_msg>{text}</error_msg></error>")
        ).ping(),
        MARKUP,
    ),
    "stderr": (
        lambda text: project(
            inside(
                "query_completed_job",
                "<completed_job><error_mask>0</error_mask><exit_status>0</exit_status>"
                "<elapsed_time>1</elapsed_time><cpu_time>1</cpu_time>"
                f"<stderr_out><![CDATA[{text}]]></stderr_out></completed_job>",
            )
        ).query_completed_job("j"),
        MARKUP + STDERR,
    ),
    "a page with an HTTP status": (error_page(500), MARKUP),
    "a redirect's page": (error_page(301), MARKUP),
    "is it a page": (lambda text: is_page(text.encode()), MARKUP),
    "a page's title": (page_title, MARKUP),
    "a page's words": (page_text, MARKUP),
    "what is hidden": (Redactor(Authenticator(AUTHENTICATOR)), MARKUP),
    "logins": (hide_logins, MARKUP),
    "words on a line": (shorten, MARKUP),
    "escapes of an error": (unescaped_words, MARKUP),
    "escapes of stderr": (stderr_text, MARKUP),
    "a job's own stderr": (unwrap, MARKUP + STDERR),
    "templates": (read_templates, MARKUP + TEMPLATE),
}
CASES = [(name, piece) for name, (_, pieces) in PARSERS.items() for piece in pieces]


def seconds(parse: Callable[[str], object], text: str) -> float:
    begun = time.process_time()
    with contextlib.suppress(GahpError, TemplateError):
        parse(text)
    return time.process_time() - begun


def grows_as_its_input(parse: Callable[[str], object], piece: str, size: int) -> bool:
    once, twice = of(size, piece), of(2 * size, piece)
    first = seconds(parse, once)
    return seconds(parse, twice) < FACTOR * first + SLACK


@pytest.mark.parametrize("parser", PARSERS)
def test_no_delimiter_makes_a_parser_slower_than_its_input_is_long(parser: str) -> None:
    parse, pieces = PARSERS[parser]
    # What is slow by chance is not slow three times.
    slow = [
        piece
        for piece in pieces
        if not any(grows_as_its_input(parse, piece, SIZE) for _ in range(3))
    ]
    assert slow == []
