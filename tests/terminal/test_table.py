"""Tables fit the terminal, and lose nothing on a pipe."""

import io
import re

import pytest
from hypothesis import example, given, strategies as st

from boinc_gahp.terminal.table import Column, cells, cut, fitted, lines
from boinc_gahp.text import printable

NAMES = st.text(max_size=30)
COLUMN = st.builds(
    Column,
    st.sampled_from(["id", "name", "state of it"]),
    rank=st.integers(0, 3),
    minimum=st.none() | st.integers(1, 12),
    right=st.booleans(),
    middle=st.booleans(),
)


@st.composite
def tables(draw):
    columns = draw(st.lists(COLUMN, min_size=1, max_size=5))
    row = st.lists(NAMES, min_size=len(columns), max_size=len(columns))
    return columns, draw(st.lists(row, min_size=1, max_size=5))


class Stream(io.StringIO):
    encoding = "utf-8"


@given(tables(), st.integers(1, 120))
def test_no_line_is_wider_than_the_terminal(table, width):
    columns, rows = table
    for line in lines(columns, rows, Stream(), width=width):
        assert cells(line) <= width


@given(tables())
@example(([Column("id")], [["\U0001f3fb"]]))  # a skin tone without a letter has no width
def test_on_a_pipe_every_cell_is_there_whole_and_in_its_column(table):
    columns, rows = table
    title, *shown = lines(columns, rows, Stream())
    assert len(shown) == len(rows)
    for line, row in zip(shown, rows, strict=True):
        for cell in row:
            assert printable(cell) in line
    kept = [index for index in range(len(columns)) if any(printable(row[index]) for row in rows)]
    assert [word for index in kept for word in columns[index].title.split()] == title.split()


def test_columns_stand_below_each_other_whatever_the_letters_are():
    columns = [Column("name"), Column("state")]
    rows = [["批次一", "done"], ["Ü&<b>", "done"], ["cafe\u0301", "done"]]
    places = {cells(line.partition("done")[0]) for line in list(lines(columns, rows, Stream()))[1:]}
    assert places == {8}


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("abc", 3), ("批次", 4), ("e\u0301", 1), ("한글", 4), ("\u00e9", 1)],
)
def test_a_text_takes_the_columns_that_terminals_give_it(text, width):
    assert cells(text) == width


@given(NAMES.map(printable), st.integers(0, 20), st.booleans())
def test_a_text_that_is_cut_is_not_too_wide_and_says_that_it_is_cut(text, width, middle):
    shown = cut(text, width, middle=middle)
    assert cells(shown) <= width
    assert shown == text if cells(text) <= width else "…" in shown or width == 0


def test_names_are_cut_in_the_middle_as_they_differ_at_their_ends():
    assert cut("sweep-20261121_0001", 10, middle=True) == "sweep…0001"
    assert cut("批次批次批次", 6, middle=True) == "批…次"


def test_the_least_important_column_goes_first_and_the_name_is_cut_last():
    columns = [Column("id"), Column("name", minimum=10), Column("app", rank=2), Column("x", rank=1)]
    natural = [4, 30, 8, 5]
    assert fitted(columns, natural, None) == natural
    assert fitted(columns, natural, 53) == natural
    assert fitted(columns, natural, 52) == [4, 29, 8, 5]
    assert fitted(columns, natural, 33) == [4, 10, 8, 5]
    assert fitted(columns, natural, 32) == [4, 19, 0, 5]
    assert fitted(columns, natural, 20) == [4, 14, 0, 0]
    assert fitted(columns, natural, 9) == [4, 0, 0, 0]
    assert fitted(columns, natural, 2) == [2, 0, 0, 0]


def test_a_column_without_any_text_is_left_out_and_no_rows_are_no_table():
    columns = [Column("id"), Column("lease"), Column("name")]
    assert list(lines(columns, [["1", "", "a"]], Stream())) == ["id  name", "1   a"]
    assert list(lines(columns, [], Stream())) == []


def test_a_column_whose_texts_come_late_is_there_on_a_pipe():
    columns = [Column("id"), Column("why")]
    rows = [["1", ""]] * 1000 + [["2", "no disk"]]
    assert list(lines(columns, rows, Stream()))[-1] == "2   no disk"
    assert list(lines(columns, rows, Stream(), width=80))[-1] == "2"


def test_a_table_without_titles_begins_with_its_first_row():
    rows = [["1", "a"], ["23", "b"]]
    assert list(lines([Column(), Column()], rows, Stream(), indent="  ")) == ["  1   a", "  23  b"]


def test_rows_that_come_late_are_whole_on_a_pipe_and_cut_on_a_terminal():
    rows = [["a"]] * 1000 + [["b" * 50]]
    assert list(lines([Column("name", minimum=4)], rows, Stream()))[-1] == "b" * 50
    assert list(lines([Column("name", minimum=4)], rows, Stream(), width=80))[-1] == "bbb…"


def test_rows_are_taken_as_they_are_printed():
    taken = []

    def rows():
        for number in range(5000):
            taken.append(number)
            yield [str(number)]

    table = lines([Column("id")], rows(), Stream())
    next(table)
    assert len(taken) == 1000


def test_a_stream_without_the_letters_shows_escapes_that_still_stand_in_columns():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="backslashreplace")
    rows = [["批", "x"], ["abcdefgh", "y"]]
    shown = list(lines([Column("name", minimum=4), Column("s")], rows, stream))
    assert shown == ["name      s", "\\u6279    x", "abcdefgh  y"]
    narrow = list(lines([Column("name", minimum=4), Column("s")], rows, stream, width=9))
    assert all(line.isascii() and re.fullmatch(r".{1,9}", line) for line in narrow)
