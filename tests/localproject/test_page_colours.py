"""The page's colours, light and dark, can be read (WCAG 2.2, 1.4.3 and 1.4.11)."""

import re
from importlib import resources

import pytest

_CSS = (resources.files("boinc_gahp.localproject.web") / "static" / "page.css").read_text("utf-8")
_LIGHT, _DARK = (
    dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block))
    for block in re.findall(r":root \{(.*?)\}", _CSS, re.DOTALL)
)
#: Text, and what it stands on.
TEXTS = [(text, ground) for text in ("ink", "soft", "accent") for ground in ("bg", "card")] + [
    ("on-accent", "accent"),
    ("failed", "card"),
    ("done", "card"),
    ("ink", "bad"),
]
#: What is no text, but tells something.
MARKS = [(mark, "card") for mark in ("in-progress", "done", "failed", "aborted")]


def luminance(colour):
    """Return the relative luminance of ``#rrggbb``, 0 to 1."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    """Return the contrast of two colours, 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_the_measure_is_right():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("colours", [_LIGHT, _DARK], ids=["light", "dark"])
def test_texts_and_marks_stand_out(colours):
    weak = {
        f"{one} on {other}": round(contrast(colours[one], colours[other]), 2)
        for pairs, least in ((TEXTS, 4.5), (MARKS, 3.0))
        for one, other in pairs
        if contrast(colours[one], colours[other]) < least
    }
    assert weak == {}


def test_both_schemes_have_all_colours():
    assert _LIGHT.keys() == _DARK.keys()
