import re
from xml.etree import ElementTree

import pytest

from boinc_gahp_docs import picture, rooms
from tests.documents.conftest import ROOT

pytestmark = pytest.mark.timeout(600)

SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_shows_every_room_and_each_direct_arrow_with_its_number():
    root = ElementTree.fromstring(picture.draw(standalone=True))
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    floor = " ".join(texts[-2:])
    for room, modules in rooms.rooms().items():
        if room in rooms.FLOOR:
            assert (room if modules == 1 else f"{room} {modules}") in floor
        else:
            at = texts.index(room)
            assert texts[at + 2].startswith(f"{modules} module")
    arrows = rooms.between_rooms(rooms.arrows())
    drawn = [arrows[pair] for pair in rooms.direct(arrows) if pair[0] != "cli"]
    assert [int(text) for text in texts if text.isdigit()] == drawn


def test_the_committed_picture_is_up_to_date():
    committed = (ROOT / "docs" / "images" / "rooms.svg").read_text("utf-8")
    assert committed == picture.draw(standalone=True), "scripts/docs picture draws it anew"


def test_the_picture_is_part_of_the_page_in_the_colours_of_the_page(built):
    page = built.page("architecture")
    svg = page.find("svg", class_="rooms")
    assert svg is not None
    assert svg["fill"] == "currentColor"
    assert svg.find("style") is None
    assert re.search(r"\bhtcondor\b.*\bfetch\b", page.get_text(), re.DOTALL)
