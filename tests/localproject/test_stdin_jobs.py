"""The lines of create_work's standard input: read as what they were written for."""

from __future__ import annotations

from dataclasses import fields

from hypothesis import given, settings, strategies as st

from boinc_gahp.localproject import NewJob, RemoteInput
from boinc_gahp.localproject.server.job_line import read_job_line

_WORD = st.text("abcXYZ019_.-", min_size=1, max_size=12).filter(lambda word: word[0] not in "-")
_LINE = st.text("ab -_=,;$é<&>'", min_size=1, max_size=30).filter(lambda text: text[0] not in "'\"")


@st.composite
def jobs_and_lines(draw: st.DrawFn) -> tuple[NewJob, str]:
    """Yield a job, and a line that create_work reads as that job."""
    words: list[list[str]] = []
    given: dict[str, object] = {}
    for option, name, values in (
        ("wu_name", "name", _WORD),
        ("command_line", "command_line", _LINE),
        ("priority", "priority", st.integers(-100, 100)),
        ("wu_template", "input_template", _WORD),
        ("result_template", "output_template", _WORD),
        ("target_host", "target_host", st.integers(1, 1000)),
        ("target_user", "target_user", st.integers(1, 1000)),
    ):
        value = draw(st.none() | values)
        if value is not None:
            given[name] = value
            text = f'"{value}"' if name == "command_line" else str(value)
            words.append([f"--{option}", text])
    files: list[str | RemoteInput] = []
    for file in draw(
        st.lists(_WORD | st.builds(RemoteInput, _WORD, st.integers(0, 10**9).map(float), _WORD))
    ):
        files.append(file)
        words.append([file] if isinstance(file, str) else ["--remote_file", *map(str, file)])
    # Files keep their order among themselves, and may stand anywhere between the options.
    rest = words[len(given) :]
    parts: list[list[str]] = []
    for part in draw(st.permutations(words[: len(given)])):
        parts.append(part)
        following = draw(st.integers(0, len(rest)))
        parts += rest[:following]
        rest = rest[following:]
    separators = st.sampled_from([" ", "  ", "\t"])
    text = "".join(word + draw(separators) for part in parts + rest for word in part)
    return NewJob(files=tuple(files), **given), text  # type: ignore[arg-type]


@settings(max_examples=40)
@given(jobs_and_lines())
def test_a_line_is_read_as_the_job_that_it_was_written_for(case: tuple[NewJob, str]) -> None:
    job, line = case
    assert read_job_line(line) == ([job] if line else [])


@settings(max_examples=15)
@given(jobs_and_lines(), jobs_and_lines())
def test_what_a_line_says_goes_over_the_defaults(
    own: tuple[NewJob, str], defaults: tuple[NewJob, str]
) -> None:
    merged = own[0].over(defaults[0])
    for field in fields(NewJob):
        mine, other = getattr(own[0], field.name), getattr(defaults[0], field.name)
        assert getattr(merged, field.name) == (other if mine in (None, "", ()) else mine)
