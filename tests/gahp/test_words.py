import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import BadRequest
from boinc_gahp.gahp import lines
from boinc_gahp.gahp.lines import LineSplitter


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(rb"\a\b\\c", ["ab\\c"], id="a backslash makes any character literal"),
        pytest.param(b"a\\\r\\\nb c", ["a\r\nb", "c"], id="escaped CR LF"),
        pytest.param(b"a\tb", ["a\tb"], id="a tab is no border"),
        pytest.param(b"\x01\\ \x02\\\\ \x03", ["\x01 \x02\\", "\x03"], id="control characters"),
        pytest.param(b"\xed\xa0\x80\\ \x01 x", ["\udced\udca0\udc80 \x01", "x"], id="CESU"),
        pytest.param("é\\ ü".encode(), ["é ü"], id="UTF-8"),
        pytest.param(b"\xff\xfe", ["\udcff\udcfe"], id="no UTF-8"),
    ],
)
def test_arguments_are_divided_by_unescaped_spaces(line, expected):
    assert lines.split(line) == expected


def test_a_backslash_at_the_end_is_an_error():
    assert lines.split(b"a \\\\") == ["a", "\\"]
    with pytest.raises(BadRequest, match="nothing to escape"):
        lines.split(b"a \\")
    with pytest.raises(BadRequest, match="nothing to escape"):
        lines.split(b"a \\\\\\")


arguments = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.text(alphabet=" \\\r\n\x01\x02\x03aé", max_size=12).map(str.encode),
    ),
    min_size=1,
)


@given(arguments)
def test_any_bytes_come_back_as_they_were(raw):
    line = lines.join([lines.decode(argument) for argument in raw])
    assert [lines.encode(word) for word in lines.split(line)] == raw


@given(arguments)
def test_any_arguments_stay_on_one_line(raw):
    line = lines.join([lines.decode(argument) for argument in raw])
    assert LineSplitter().feed(line + b"\nB\n") == [line, b"B"]


@given(st.text(alphabet=" \\ax\x01", max_size=30).map(str.encode))
def test_splitting_agrees_with_one_character_at_a_time(line):
    found, word, escaped = [], "", False
    for character in line.decode():
        if escaped or character not in "\\ ":
            word, escaped = word + character, False
        elif character == "\\":
            escaped = True
        else:
            found.append(word)
            word = ""
    if escaped:
        with pytest.raises(BadRequest):
            lines.split(line)
    else:
        assert lines.split(line) == [*found, word]
