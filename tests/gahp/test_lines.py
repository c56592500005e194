import pytest
from hypothesis import given, strategies as st

from boinc_gahp.gahp.lines import LineSplitter, TooLong


def lines_of(data, limit=1000):
    return LineSplitter(limit).feed(data)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"A\r\n", [b"A"], id="CR LF"),
        pytest.param(b"A\r\r\n", [b"A\r"], id="one CR is dropped, not two"),
        pytest.param(b"A\\\r\n", [b"A\\\r"], id="escaped CR is kept, LF ends the line"),
        pytest.param(b"A\0B\n", [b"A\0B"], id="NUL"),
        pytest.param(b"\xff\xfe\n", [b"\xff\xfe"], id="no UTF-8"),
    ],
)
def test_lines_end_at_an_unescaped_lf(data, expected):
    assert lines_of(data) == expected


def slow_but_clear(data):
    """Return the lines of ``data``, found one character at a time."""
    lines, line, escaped, last_cr = [], bytearray(), False, False
    for value in data:
        if value == 10 and not escaped:
            lines.append(bytes(line[:-1] if last_cr else line))
            line, last_cr = bytearray(), False
            continue
        line.append(value)
        last_cr = value == 13 and not escaped
        escaped = value == 92 and not escaped
    return lines


framing = st.lists(st.sampled_from([b"\\", b"\n", b"\r", b" ", b"a", b"\\\\\n"])).map(b"".join)


@given(framing, st.lists(st.integers(0, 40)) | st.just(range(1000)))
def test_lines_do_not_depend_on_how_bytes_arrive(data, cuts):
    splitter = LineSplitter()
    found = []
    begin = 0
    for cut in [*sorted(cuts), len(data)]:
        found += splitter.feed(data[begin : max(begin, cut)])
        begin = max(begin, cut)
    assert found == slow_but_clear(data)


@pytest.mark.parametrize("size", [1, 3, 64])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_line_that_is_too_long_is_one_event_and_the_next_is_whole(end, size):
    data = b"x" * 10 + end + b"y" * 11 + end + b"z\\\n" * 11 + end + b"END" + end
    splitter = LineSplitter(10)
    found = [line for i in range(0, len(data), size) for line in splitter.feed(data[i : i + size])]
    assert found == [b"x" * 10, TooLong(10), TooLong(10), b"END"]


def test_nothing_of_a_line_that_is_too_long_is_kept():
    splitter = LineSplitter(1000)
    for _ in range(1000):
        splitter.feed(b"x" * 1000)
    assert len(splitter._begun) <= 1001
    assert splitter.feed(b"\nB\n") == [TooLong(1000), b"B"]


@pytest.mark.parametrize(
    ("filler", "chunk"),
    [
        pytest.param(b"word ", 65536, id="words"),
        pytest.param(b"w", 100, id="small chunks"),
        pytest.param(b"\\\\", 65536, id="backslashes"),
        pytest.param(b"\\\n", 65536, id="escaped line ends"),
    ],
)
def test_a_long_line_comes_back_whole_however_it_arrives(filler, chunk):
    # A splitter that looks at what it has again with each chunk takes minutes for this.
    data = filler * (1_000_000 // len(filler)) + b"\n"
    splitter = LineSplitter()
    found = [
        line for i in range(0, len(data), chunk) for line in splitter.feed(data[i : i + chunk])
    ]
    assert found == [data[:-1]]
