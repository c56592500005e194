"""Which batch or job a name or an id stands for."""

import pytest

from boinc_gahp.errors import NoSuchBatch, NoSuchJob, WrongBatch
from boinc_gahp.states import BatchState


def test_a_batch_is_found_by_its_id_and_by_its_name(site):
    batch = site.batch(1, "found")
    for which in (batch.id, str(batch.id), "found", f"id:{batch.id}", "name:found"):
        assert site.project.batch(which).id == batch.id


def test_a_name_in_other_letters_is_found_if_no_other_is_like_it(site):
    batch = site.batch(0, "Café")
    assert site.project.batch("cafe ").id == batch.id


def test_the_exact_name_wins_over_one_that_the_project_thinks_the_same(site):
    older, newer = site.batch(0, "Sweep"), site.batch(0, "sweep")
    assert site.project.batch("sweep").id == newer.id
    assert site.project.batch("Sweep").id == older.id
    with pytest.raises(WrongBatch, match=f"id {older.id}.*") as caught:
        site.project.batch("SWEEP")
    assert f"id {newer.id}" in str(caught.value)


def test_two_batches_of_one_name_are_reported_with_id_state_and_time(site):
    older, newer = site.batch(2, "twice"), site.batch(0, "twice")
    with pytest.raises(WrongBatch) as caught:
        site.project.batch("twice")
    text = str(caught.value)
    assert caught.value.said == "twice"
    for batch, state in ((older, "running"), (newer, "being made")):
        assert f"'twice' (id {batch.id}, {state}, of 2" in text
    assert text.endswith(f"choose one by its id, for example id:{newer.id}")
    assert site.project.batch(f"id:{older.id}").njobs == 2


def test_what_is_done_to_the_newer_of_two_does_not_touch_the_older(site):
    older, newer = site.batch(2, "both"), site.batch(3, "both")
    assert newer.counts().queued == newer.njobs == 3
    newer.extend(4e9)
    newer.abort()
    newer.retire()
    assert newer.state is BatchState.RETIRED
    assert older.refresh().state is BatchState.IN_PROGRESS
    assert older.expire_time is None
    assert older.counts().queued == 2
    assert site.project.batch("both").id == older.id


def test_a_foreign_batch_of_the_same_name_does_no_harm(site):
    site.batch(1, "shared", project=site.somebody_else())
    mine = site.batch(2, "shared")
    found = site.project.batch("shared")
    assert found.id == mine.id
    found.abort()
    assert found.state is BatchState.ABORTED


def test_a_number_that_is_an_id_and_a_name_is_asked_about(site):
    numbered = site.batch(0)
    called = site.batch(0, str(numbered.id))
    with pytest.raises(WrongBatch, match=f"write id:{numbered.id} or id:{called.id}"):
        site.project.batch(str(numbered.id))
    assert site.project.batch(numbered.id).id == numbered.id
    assert site.project.batch(f"id:{numbered.id}").id == numbered.id
    assert site.project.batch(f"name:{numbered.id}").id == called.id


def test_a_number_that_is_a_name_and_a_strangers_id_is_the_name(site):
    theirs = site.batch(0, project=site.somebody_else())
    mine = site.batch(0, str(theirs.id))
    assert site.project.batch(str(theirs.id)).id == mine.id


def test_a_foreign_batch_is_told_apart_from_one_that_is_not_there(site):
    theirs = site.batch(0, project=site.somebody_else())
    for which in (theirs.id, str(theirs.id), f"id:{theirs.id}", theirs.name):
        with pytest.raises(WrongBatch, match="belongs to another account"):
            site.project.batch(which)


def test_a_retired_batch_is_found_although_it_is_not_listed(site):
    batch = site.batch(1, "gone-by")
    batch.retire()
    batch.retire()
    assert (batch.state, batch.is_over) == (BatchState.RETIRED, True)
    assert site.project.batches() == ()
    for which in (batch.id, "gone-by", "GONE-BY"):
        assert site.project.batch(which).state is BatchState.RETIRED


def test_a_handle_does_nothing_to_a_batch_that_has_its_id_on_a_project_that_began_anew(site):
    mine, strange = site.batch(1, "mine"), site.batch(1, "strange")
    site.change("DELETE FROM batch WHERE id = ?", mine.id)
    site.change("UPDATE batch SET id = ? WHERE id = ?", mine.id, strange.id)
    for end in (mine.abort, lambda: mine.abort([1]), mine.retire, lambda: mine.extend("1d")):
        with pytest.raises(NoSuchBatch, match="has the batch 'strange' under this id now"):
            end()
    assert mine.wait(timeout=10)
    assert mine.gone
    assert site.project.batch("strange").state is BatchState.IN_PROGRESS


def test_a_wrong_name_gets_the_nearest_and_the_newest(site):
    with pytest.raises(NoSuchBatch, match="you have no batches there"):
        site.project.batch("sweeep")
    site.batch(0, "sweep-of-may")
    site.batch(0, "other")
    with pytest.raises(NoSuchBatch) as caught:
        site.project.batch("swep-of-May")
    assert "did you mean 'sweep-of-may'? (your newest there: 'other' (id" in str(caught.value)
    for which in (123_456, "123456", 0, -1, 2**80, "name:12345", "id:x", "", "'", "\x07"):
        with pytest.raises(NoSuchBatch):
            site.project.batch(which)


def test_a_name_with_quotes_is_found_in_the_list(site):
    # The project escapes it twice, and finds it never again (web-rpcs.rst, "create_batch").
    batch = site.batch(0, 'Ann\'s "first"')
    assert site.project.batch('Ann\'s "first"').id == batch.id


def test_a_job_is_found_by_name_and_by_id(site):
    batch = site.batch(3)
    last = list(batch.jobs())[-1]
    for which in (last.name, last.id, str(last.id), f"id:{last.id}", f"name:{last.name}"):
        assert batch.job(which).id == last.id


def test_a_wrong_job_gets_the_nearest_name(site):
    batch = site.batch(3)
    name = next(batch.jobs()).name
    with pytest.raises(NoSuchJob, match=f"did you mean '{name}'"):
        batch.job(name[:-2] + "-0")
    with pytest.raises(NoSuchJob, match="its first is"):
        batch.job(7_654_321)
    with pytest.raises(NoSuchJob, match="it has none at all"):
        site.batch(0).job("x")
