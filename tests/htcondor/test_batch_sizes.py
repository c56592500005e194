"""How large HTCondor's batches become when jobs take templates with them."""

import pytest

from tests.htcondor.desk import desk_of


@pytest.fixture
def large_template(site):
    """The app's input template has 6,000 bytes more than others."""
    path = site.local.core.templates / "uppercase_in"
    before = path.read_text()
    path.write_text(before.replace("</workunit>", f"<note>{'n' * 6_000}</note></workunit>"))
    yield
    path.write_text(before)


@pytest.mark.long
@pytest.mark.usefixtures("large_template")
def test_batches_of_jobs_with_templates_fit_into_a_request(site):
    """A template is larger than was thought when the jobs were accepted: that is learned once."""
    site.max_post_bytes = 100_000
    with desk_of(site) as desk:
        ids = desk.accept(40, delay_bound=4242.0)
        desk.run()
        desk.check_once(ids)
        refused = desk.batches("ended")
        assert 3 <= len(site.batches()) <= 4
        plain = desk.accept(40)
        more = desk.accept(40, delay_bound=4242.0)
        desk.run()
        desk.check_once([*ids, *plain, *more])
        # Of the next, none is too large; others are as large as ever.
        assert desk.batches("ended") == refused
        assert desk.row(plain[0]).batch_id == desk.row(plain[-1]).batch_id
        asked = {desk.row(job_id).job_name for job_id in (*ids, *more)}
    assert set(site.workunits("w.delay_bound = 4242")) == asked
