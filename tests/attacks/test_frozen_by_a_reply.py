"""The project wants to keep the daemon busy for good, with an answer of a few bytes or a megabyte.

A pattern or a parser whose time grows faster than what it reads holds Python's lock all that time:
no other request is served, no line is answered, and only SIGKILL ends it. So every parser of what a
network sends is fed with each of its own delimiters, and its time has to grow as they do.
"""

import contextlib
import gc
import logging
import time
from functools import partial

import pytest
from hypothesis import settings

from boinc_gahp.errors import GahpError
from boinc_gahp.fetch.job_end import unwrap
from boinc_gahp.rpc import _reply_errors
from boinc_gahp.rpc._pages import is_page, page_text, page_title
from boinc_gahp.rpc._redact import Redactor
from boinc_gahp.rpc._replies import stderr_text, unescaped_words
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.secret import Authenticator, hide_logins
from boinc_gahp.templates.reading import read_templates
from boinc_gahp.templates.rules import check_template
from boinc_gahp.templates.types import TemplateError
from boinc_gahp.text import shorten
from tests.rpc.canned import inside, project
from tests.rpc.scripted import AUTHENTICATOR

#: Twice as much may take as many times as long (a busy machine), and so many seconds more.
FACTOR, SLACK = 3.5, 0.05
#: What costs most of all that is harmless, and how many times as much anything else may cost: what
#: looks four thousand bytes ahead at each of them takes a time that grows with its input, too.
COSTLY, TIMES = ("<", "<x>"), 6.0

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
    *("<authenticator>", "&lt;authenticator&gt;", "auth_str=", "://", "://|a@", "://|:"),
    *("http://@", "'", '"', "\\", "no job ", "ERROR: ", "ERROR:| "),
    *("Duplicate entry '", "Duplicate entry 'a", "md5_file: can't open /"),
]
JOB = "<job><id>1</id><name>a</name><canonical_instance_id>0</canonical_instance_id>"
NAMES = [
    *("<name>", "</name>", "<name>|a", "<name>|<", "<name>|&", "<job_name>"),
    *("<job_name>|</job_nam", "<error_msg>", "<stderr_out>", "<stderr_out>|&lt;"),
    *("<templates>", "<templates>|</template"),
    *("<job>", "</job>", "<job> |\n", "<job><job_name>|a", "<job><job_name>a</job_name>| "),
    *("<job><job_name>a</job_name><status>DONE</status></job>", "<batch_size>1</batch_size>"),
    *("<job><job_name>a</job_name><status>|D", "<job><job_name>a</job_name>", "<job><id>1</id>"),
    *("<error>", "<error>|<error_num>", "<error><error_msg>|a</error_msg><error_msg>"),
    *(f"{JOB}|<error>a</error>", f"{JOB}|<exit_status>1</exit_status>"),
    *("<batch>", "<batch>|<id>1</id>"),
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
REFUSALS = [
    *("Duplicate entry '", "Duplicate entry '|a", "md5_file: can't open ", "can't parse request "),
    *("md5_file: can't open |a/", "# of uploaded files (", "# of uploaded files (|1"),
    *("not owner of ", "a upload failed because: ", "a upload failed because: |exceeds"),
    *(" upload failed because: "),
    *("file immutability violation for ", "can't parse request message:| ", "no batch named "),
    "\n",
]
STDERR = [
    *("<stderr_txt>", "<stderr_txt>| ", "<stderr_txt>|]]>", "<stderr_txt>|]]> ", "</stderr_txt>"),
    *("<core_client_version>", "<core_client_version>|7", "<![CDATA[", "<message>", "<![CDATA[| "),
    *("<message>|</message", "]]>", "]]> ", "<stderr_txt>|\n"),
]


def of(size, piece):
    beginning, bar, repeated = piece.rpartition("|")
    repeated = repeated or (bar and " ")
    return (beginning + repeated * (size // len(repeated) + 1))[:size]


def query_batch2(body, chunk=65536):
    return project(body, chunk=chunk).query_batch2(["b"])


def inside_of(rpc):
    ask = QUESTIONS[rpc]
    return lambda text: ask(project(inside(rpc.partition(" ")[0], text)))


QUESTIONS = {
    "query_batch2": lambda project: project.query_batch2(["b"]),
    "query_batch": lambda project: project.query_batch(batch_id=1),
    "query_batch with details": lambda project: list(project.iter_jobs(1)),
    "query_batches": WebRpcs.query_batches,
    "query_job": lambda project: project.query_job(1),
    "query_files": lambda project: project.query_files(["a"]),
    "ping": WebRpcs.ping,
}


def error_message(text):
    error = f"<error><error_num>-1</error_num><error_msg>{text}</error_msg></error>"
    project(inside("ping", error)).ping()


def stderr(text):
    known = "<error_mask>0</error_mask><exit_status>0</exit_status><elapsed_time>1</elapsed_time>"
    known += f"<cpu_time>1</cpu_time><stderr_out><![CDATA[{text}]]></stderr_out>"
    reply = inside("query_completed_job", f"<completed_job>{known}</completed_job>")
    return unwrap(project(reply).query_completed_job("j").stderr_out)


def page(status, text):
    project(text.encode(), status=status).ping()


#: Each with what it is fed.
PARSERS = {
    "a whole reply": (lambda text: query_batch2(text.encode()), MARKUP + NAMES),
    "a reply in small pieces": (lambda text: query_batch2(text.encode(), 997), MARKUP + NAMES),
    "inside of query_batch2": (inside_of("query_batch2"), MARKUP + NAMES),
    **{f"inside of {rpc}": (inside_of(rpc), NAMES) for rpc in list(QUESTIONS)[1:]},
    "an error message": (error_message, MARKUP),
    "stderr": (stderr, MARKUP + STDERR),
    "a page with an HTTP status": (partial(page, 500), MARKUP),
    "is it a page": (lambda text: is_page(text.encode()), MARKUP),
    "a page's title": (page_title, MARKUP),
    "a page's words": (page_text, MARKUP),
    "what is hidden": (Redactor(Authenticator(AUTHENTICATOR)), MARKUP),
    "logins": (hide_logins, MARKUP),
    "words on a line": (shorten, MARKUP),
    "escapes of an error": (unescaped_words, MARKUP),
    "escapes of stderr": (stderr_text, MARKUP),
    "a job's own stderr": (unwrap, MARKUP + STDERR),
    "a refusal's words": (partial(_reply_errors.meaning, -1), MARKUP + REFUSALS),
    "templates": (read_templates, MARKUP + TEMPLATE),
    "a template's tags": (check_template, MARKUP + TEMPLATE),
}


def seconds(parse, text):
    gc.disable()  # what all the tests before have left would be looked through
    try:
        begun = time.process_time()
        with contextlib.suppress(GahpError, TemplateError):
            parse(text)
        return time.process_time() - begun
    finally:
        gc.enable()


def is_slow(parse, piece, size):
    once, twice = of(size, piece), of(2 * size, piece)
    first, second = seconds(parse, once), seconds(parse, twice)
    if second > FACTOR * first + SLACK:
        return True
    costly = (seconds(parse, of(2 * size, each)) for each in COSTLY)
    return second > 0.5 and second > TIMES * max(costly)


def costliest(parse, pieces, count):
    """Return the pieces of which 64 KB take longest."""
    return sorted(pieces, key=lambda piece: -seconds(parse, of(1 << 16, piece)))[:count]


#: A megabyte of everything takes a quarter of an hour, and more where coverage is measured.
LARGE = 1 << (20 if settings().max_examples >= 1000 else 17)


@pytest.mark.long
@pytest.mark.parametrize("size", [1 << 14, LARGE])
@pytest.mark.parametrize("parser", PARSERS)
def test_no_delimiter_makes_a_parser_slower_than_its_input_is_long(parser, size):
    parse, pieces = PARSERS[parser]
    logging.disable(logging.WARNING)  # what PHP seems to say
    try:
        if size == 1 << 17:
            pieces = costliest(parse, pieces, 4)
        # What is slow by chance is not slow three times.
        slow = [piece for piece in pieces if all(is_slow(parse, piece, size) for _ in range(3))]
    finally:
        logging.disable(logging.NOTSET)
    assert slow == []
