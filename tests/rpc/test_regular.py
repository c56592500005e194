"""What is read at a glance is what the XML parser would have made of it. Recordings: contract."""

from hypothesis import example, given, strategies as st
from lxml import etree

from boinc_gahp.rpc import _replies, _results


def outcome(chunks, *, at_a_glance):
    """Return all that a reading comes to, but for white space between the elements."""
    tags, form = ("batch_size", "job"), _results.STATUS_FORM if at_a_glance else None
    records = _replies.RepeatedElements(tags, _results.size_or_status, 10**6, form)
    reply = _replies.read(chunks, "query_batch2", records)
    rest = []
    for element in () if reply.root is None else reply.root:
        if element.tag not in tags:
            rest.append((str(element.tag), etree.tostring(element, with_tail=False).decode()))
    if reply.root is None or reply.mismatch:
        return "refused"  # whatever was read until then
    return records.items, rest, reply.incomplete, reply.page, reply.messages, reply.words


_WORDS = st.sampled_from(
    ["<job>", "</job>", "\n ", "<job_name>", "</job_name>", "<status>", "</status>", "DONE", "a b"]
    + ["<batch_size>2</batch_size>", "é", "&amp;", "<", "<error>", "\r", "x", "<br />\n"]
    + ["<job>\n<job_name>n</job_name>\n<status>UNSENT</status>\n</job>\n"] * 4
    + ["<job><job_name>n&o</job_name><status>DONE</status></job>"]
    + ["<error_msg>", "</error_msg>", "<!--", "\nWarning: a ", "<br />\n<b>Warning</b>: b "]
    + [" on line 7\n", " on line <b>7</b><br />\n", "Notice: c on line 8\n", "\n"]
)


_JOB = "<job>\n<job_name>n</job_name>\n<status>DONE</status>\n</job>\n"


@given(st.lists(_WORDS), st.integers(1, 60))
# A text that looks like a job stays a text.
@example(
    [_JOB, "<error><error_num>-1</error_num><error_msg>x", *[_JOB] * 3, "</error_msg></error>"], 50
)
def test_whatever_stands_between_jobs_reads_the_same(pieces, size):
    data = f"<query_batch2>\n{''.join(pieces)}</query_batch2>\n".encode()
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert outcome(chunks, at_a_glance=True) == outcome(chunks, at_a_glance=False)
