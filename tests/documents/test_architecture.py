import pytest

from boinc_gahp_docs import picture
from tests.documents.conftest import ROOT

pytestmark = pytest.mark.timeout(600)


def test_the_committed_picture_is_up_to_date():
    committed = (ROOT / "docs" / "images" / "rooms.svg").read_text("utf-8")
    assert committed == picture.draw(standalone=True), "scripts/docs picture draws it anew"
