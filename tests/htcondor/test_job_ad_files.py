"""The files that a job's ad names."""

import os
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from boinc_gahp.htcondor._files import MAX_TEMPLATE
from boinc_gahp.htcondor._job_ad import read_ad
from boinc_gahp.htcondor.attributes import AdRefused
from boinc_gahp.submit.types import RemoteFile
from tests.htcondor.ads import MD5, OPTIONAL, SETTINGS, ad, job, local, refused

URL = "https://data.example.org/d/big.dat"


def test_input_files_are_listed_with_size_and_time(tmp_path):
    files = local(tmp_path, "a b.dat", "c", "in.txt")
    found = job(tmp_path, TransferInput=f" a b.dat ,{tmp_path}/c,,", In="in.txt")
    assert found.inputs == files
    assert job(tmp_path, TransferInput="a b.dat, a b.dat", In="a b.dat").inputs == files[:1]


def test_a_pipe_is_no_input_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "is not a file" in refused(tmp_path, TransferInput="pipe")


@pytest.mark.parametrize("name", ["missing.dat", "a" * 300, "file/x", "loop"])
def test_an_input_file_that_cannot_be_read_is_named(tmp_path, name):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    text = refused(tmp_path, TransferInput=name)
    assert f'transfer_input_files names "{name[:100]}' in text
    assert "cannot be read" in text
    assert refused(tmp_path, In=name).startswith("input names")


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is unreadable for root")
def test_an_input_file_of_somebody_else_is_named(tmp_path):
    (tmp_path / "secret").touch(mode=0)
    assert "you may not read" in refused(tmp_path, TransferInput="secret")


@pytest.mark.parametrize("name", ["sub", "sub/", ".", "/"])
def test_a_directory_is_refused_by_name(tmp_path, name):
    (tmp_path / "sub").mkdir()
    text = refused(tmp_path, TransferInput=name)
    assert f'"{name}", which is a directory' in text
    assert "one archive" in text


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("http://x/a", "+remote_BoincRemoteFiles"),
        ("HTTPS://x/a", "+remote_BoincRemoteFiles"),
        ("s3://bucket/a", "http and https servers only"),
        ("file:///etc/passwd", "http and https servers only"),
    ],
)
def test_other_urls_are_refused_with_what_to_do(tmp_path, url, remedy):
    text = refused(tmp_path, TransferInput=url)
    assert f'names "{url}"' in text
    assert remedy in text


def test_remote_files_come_after_the_others(tmp_path):
    files = local(tmp_path, "a")
    found = job(
        tmp_path,
        TransferInput="a",
        BoincRemoteFiles=f"{URL} 123 {MD5},\n http://x:81/e,f?g=1,2  0 {MD5} , ",
    )
    assert found.inputs == (
        *files,
        ("big.dat", RemoteFile(URL, 123, MD5.lower())),
        ("e,f", RemoteFile("http://x:81/e,f?g=1,2", 0, MD5.lower())),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (URL, f'has "{URL}"; "url nbytes md5'),
        (f"{URL} 12", "url nbytes md5"),
        (f"{URL} 12 {MD5} x, y", "url nbytes md5"),
        (f"{URL} 1.5 {MD5}", 'nbytes "1.5"'),
        (f"{URL} -1 {MD5}", 'nbytes "-1"'),
        (f"{URL} 99999999999999999999 {MD5}", "nbytes"),
        (f"{URL} 12 {MD5[1:]}", f'md5 "{MD5[1:]}"'),
        (f"{URL} 12 {MD5}, {URL} 12 zz", 'md5 "zz"'),
        (f"ftp://x/a 12 {MD5}", 'has "ftp://x/a"; an http or https URL'),
        (f"https:///a 12 {MD5}", "an http or https URL"),
        (f"https://[x/a 12 {MD5}", "an http or https URL"),
        (f"https://x/'a 12 {MD5}", "%XX"),
        (f"https://x/é 12 {MD5}", "%XX"),
        (f"https://x/ 12 {MD5}", "does not end with a file's name"),
        (f"https://x 12 {MD5}", "does not end with a file's name"),
    ],
)
def test_each_part_of_a_remote_file_is_checked(tmp_path, text, words):
    found = refused(tmp_path, BoincRemoteFiles=text)
    assert found.startswith("BoincRemoteFiles has ")
    assert words in found


def test_a_login_in_a_url_is_not_repeated(tmp_path):
    url = "https://alice:geheim@x/a"
    assert "geheim" not in refused(tmp_path, BoincRemoteFiles=f"{url} much {MD5}")
    assert "geheim" not in refused(tmp_path, TransferInput=url)


# What comes back.


def test_outputs_are_all_or_those_that_are_named_or_none(tmp_path):
    assert job(tmp_path).outputs is None
    assert job(tmp_path, TransferOutput="").outputs == ()
    assert job(tmp_path, TransferOutput=" a b , c,a b").outputs == ("a b", "c")
    assert "no output directories" in refused(tmp_path, TransferOutput="a,dir/")
    assert "s3://x/y" in refused(tmp_path, TransferOutput="s3://x/y")
    assert "TransferOutput is 5" in refused(tmp_path, TransferOutput=5)


def test_remaps_that_are_none_are_shown(tmp_path):
    assert job(tmp_path, TransferOutputRemaps="a = b c").remaps == (("a", "b c"),)
    text = refused(tmp_path, TransferOutputRemaps="a=b;c")
    assert "transfer_output_remaps is \"a=b;c\": 'c' has no =" in text


def test_a_remap_into_a_directory_that_is_not_there_is_refused_before_the_job_runs(tmp_path):
    (tmp_path / "there").mkdir()
    found = job(tmp_path, TransferOutputRemaps="a=there/x;b=there/;c=there")
    assert [path for _, path in found.remaps] == ["there/x", "there/", "there"]
    for path in ("gone/x", "gone/", str(tmp_path / "gone/x")):
        text = refused(tmp_path, TransferOutputRemaps=f"a={path}")
        assert f'sends "a" to "{path}", and there is no directory' in text
        assert str(tmp_path / "gone") in text


def test_streams_go_to_files_or_nowhere(tmp_path):
    found = job(tmp_path, Out="new/directory/out", Err="/dev/null")
    assert (found.stdout, found.stderr) == ("new/directory/out", None)
    for name in ("sub/", ".", "/", "..", str(tmp_path)):
        assert f'error is "{name}", which is a directory' in refused(tmp_path, Err=name)
    assert "output names" in refused(tmp_path, Out="s3://x/y")
    assert job(tmp_path, Out="a" * 300).stdout == "a" * 300


@pytest.mark.parametrize("other", ["both", "./both", "x/../both"])
def test_streams_cannot_go_to_one_file(tmp_path, other):
    assert "give these different names" in refused(tmp_path, Out="both", Err=other)
    assert "give these different names" in refused(tmp_path, Out="both", Err=str(tmp_path / "both"))


# Templates.


def test_templates_are_read_from_the_jobs_directory_or_elsewhere(tmp_path):
    (tmp_path / "in.xml").write_text("<input_template>ä</input_template>")
    (tmp_path / "out.xml").write_text("<output_template/>")
    found = job(
        tmp_path, BoincInputTemplate="in.xml", BoincOutputTemplate=str(tmp_path / "out.xml")
    )
    assert found.input_template == "<input_template>ä</input_template>"
    assert found.output_template == "<output_template/>"
    extra = "--output-template out.xml"
    assert job(tmp_path, BatchExtraSubmitArgs=extra).output_template == "<output_template/>"


def test_a_template_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "large").write_bytes(b"x" * (MAX_TEMPLATE + 1))
    (tmp_path / "odd").write_bytes(b"x\xff")
    for name, words in [
        ("missing", "No such file"),
        (".", "is not a file"),
        ("large", "larger than 65536 bytes"),
        ("odd", "not UTF-8 (at byte 2)"),
    ]:
        text = refused(tmp_path, BoincOutputTemplate=name)
        assert f'BoincOutputTemplate is "{name}"' in text
        assert words in text
    assert "BoincInputTemplate is 5" in refused(tmp_path, BoincInputTemplate=5)


# Anything.


def octal(raw):
    """Return the ClassAd string of ``raw``, each byte as an escape."""
    return b'"' + b"".join(b"\\%03o" % byte for byte in raw) + b'"'


ANY = st.text(
    st.sampled_from("[]{}()\"\\;=, '/\n\t\0+-*?:.@%") | st.characters(codec=None), max_size=60
)
ATTRIBUTES = [*OPTIONAL, "BoincApp", "Cmd", "Iwd", "JobDirectory"]
LITERALS = st.sampled_from(
    ["undefined", "error", "1/0", "true", "-1", '"x"', '""', "{1}", "[a=1]", "time()", "1e999"]
)


@given(ANY)
@example('[ Iwd = "/"; JobDirectory = "x" ]')
def test_any_text_is_a_job_or_refused(text):
    try:
        read_ad(text, SETTINGS)
    except AdRefused as error:
        str(error).encode()


@given(
    st.dictionaries(
        st.sampled_from(ATTRIBUTES),
        LITERALS.map(str.encode)
        | ANY.filter(lambda text: "\0" not in text and text.isascii())
        | st.binary(max_size=20).map(lambda raw: octal(raw.replace(b"\0", b""))),
    )
)
def test_an_ad_with_any_values_is_a_job_or_refused(values):
    message = ""
    try:
        read_ad(ad(Path("/"), **values), SETTINGS)
    except AdRefused as error:
        message = str(error)
    assert len(message.encode()) < 5000


@given(words=st.lists(st.binary(min_size=1).filter(lambda word: 0 not in word)))
def test_any_arguments_arrive_as_they_were(words):
    joined = b" ".join(b"'" + word.replace(b"'", b"''") + b"'" for word in words)
    found = read_ad(ad(Path("/"), Arguments=octal(joined)), SETTINGS)
    assert [os.fsencode(word) for word in found.args] == words
