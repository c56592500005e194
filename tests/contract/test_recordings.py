"""Every recorded reply through the real parser, and every recorded request built anew."""

import contextlib
import hashlib
import io
import re
import sys
from functools import cache

import pytest
from lxml import etree
from werkzeug.formparser import MultiPartParser

from boinc_gahp.errors import ProjectError, RpcError
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from tests.contract.replay import NOT_OURS, URL, WIRE, Recording, call, names, plain, replay

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

AUTHENTICATOR = "a11ce000000000000000000000000001"
ONCE = ClientOptions(retry_total=0)
#: Elements that mean nothing when they are 0.
ZERO_IS_NONE = {"app_version_num", "batch_id", "expire_time", "min_mod_time"}
FIRST_BOUNDARY = re.compile(rb"--([0-9a-f]{32})\r\n")


@cache
def expectations():
    text = (WIRE.parent / "expectations.toml").read_text(encoding="utf-8")
    return {
        f"{rpc}__{case}": row
        for rpc, rows in tomllib.loads(text).items()
        for case, row in rows.items()
    }


def project(recording, transport):
    root = recording.root
    found = None if root is None else root.findtext("authenticator")
    return WebRpcs(URL, found or AUTHENTICATOR, options=ONCE, transport=transport)


def outcome(recording, chunk):
    """Return what the recording yields, in the words of the table."""
    try:
        value = call(recording)(project(recording, replay(recording, chunk)))
    except RpcError as error:
        return of_error(error)
    if recording.rpc == "get_output":
        name, data = value
        md5 = hashlib.md5(data).hexdigest()
        return {"filename": name, "nbytes": len(data), "md5": md5}
    if recording.rpc == "get_templates":
        data = value.encode()
        return {"nbytes": len(data), "md5": hashlib.md5(data).hexdigest()}
    return {"done": True} if value is None else {"value": plain(value)}


def of_error(error):
    row = {"error": type(error).__name__}
    if isinstance(error, ProjectError):
        row |= {"words": error.words, "begins": error.words}
        if error.number != -1:
            row["number"] = error.number
    else:
        row["says"] = str(error).split(": ", 1)[1]
    for name in ("php_fatal", "cut", "status"):
        if getattr(error, name, None):
            row[name] = getattr(error, name)
    return row


def compare(found, row):
    expected = dict(row)
    begins = expected.pop("begins", None)
    if begins is not None:
        text = found.pop("begins", None)
        assert text is None or text.startswith(begins)
        found.pop("words", None)
    else:
        found.pop("begins", None)
    if "says" in expected:
        assert found.pop("says").startswith(expected.pop("says"))
    if "batches" in expected:
        batches = found.pop("value")
        found |= {
            "batches": len(batches),
            "named": [batch["name"] for batch in batches if "&" in batch["name"]],
            "last": batches[-1],
        }
    assert found == expected


@pytest.mark.parametrize("name", names())
def test_recorded_reply_yields_what_the_table_says(name):
    for chunk in (65536, 1):
        compare(outcome(Recording.load(name), chunk), expectations()[name])


def document_of(transport):
    """Return the request's document."""
    body = transport.sent[0]
    boundary = FIRST_BOUNDARY.match(body)
    assert boundary is not None
    fields, _ = MultiPartParser().parse(io.BytesIO(body), boundary[1], len(body))
    return fields["request"].encode()


def canonical(element):
    """Return an element so that what means the same to the project compares equal."""
    children = [child for child in element if isinstance(child.tag, str)]
    text = (element.text or "") if not children else ""
    value = text
    try:
        value = float(text)
    except ValueError:
        value = text.strip("\n") if element.tag != "command_line" else text
    kept = [
        child
        for child in children
        if not (child.tag in ZERO_IS_NONE and (child.text or "0") == "0")
        and not (element.tag == "job_params" and float(child.text or 0) == 0)
        and not (child.tag == "job_params" and not any(float(x.text or 0) for x in child))
        and not (child.tag in {"command_line", "name"} and not child.text)
    ]
    return (element.tag, value, *sorted(map(canonical, kept), key=lambda child: str(child[0])))


def comparable():
    return [
        name
        for name in names()
        if name not in NOT_OURS
        and not name.startswith(("get_output", "upload_files"))
        and (root := Recording.load(name).root) is not None
        and root.tag == expected_root(name)
    ]


def expected_root(name):
    rpc = name.partition("__")[0]
    root = Recording.load(name).root
    return rpc if rpc not in {"protocol", "job_file"} or root is None else str(root.tag)


@pytest.mark.parametrize("name", comparable())
def test_request_says_the_same_as_the_recorded_one(name):
    recording = Recording.load(name)
    transport = replay(recording)
    with contextlib.suppress(RpcError):
        call(recording)(project(recording, transport))
    root = recording.root
    assert root is not None
    assert canonical(etree.fromstring(document_of(transport))) == canonical(root)
