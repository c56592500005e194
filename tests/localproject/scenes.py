"""What has to be in the project for each recorded request."""

import re

from boinc_gahp.localproject.states import BatchState
from tests.localproject.recordings import CC, EA, RUN
from tests.localproject.stage import CONTENTS


def _b1(state="unsent", **others):
    """The recordings' first batch; ``others`` are states of single jobs."""

    def scene(stage):
        stage.batch(205, f"{RUN}b1")
        for number in range(1, 5):
            stage.job(164 + number, f"{RUN}j{number}", 205, others.get(f"j{number}", state))

    return scene


def _batch(batch_id, name, state=BatchState.IN_PROGRESS):
    return lambda stage: stage.batch(batch_id, f"{RUN}{name}", state)


def _jobs(
    batch_id, name, *jobs, state="unsent", app="uppercase", batch_state=BatchState.IN_PROGRESS
):
    def scene(stage):
        stage.batch(batch_id, f"{RUN}{name}", batch_state, app=app)
        for number, job in enumerate(jobs):
            stage.job(batch_id * 10 + number, f"{RUN}{job}", batch_id, state, app=app)

    return scene


def _all(*scenes):
    def scene(stage):
        for one in scenes:
            one(stage)

    return scene


def _staged(*names, batches=()):
    def scene(stage):
        for name in names:
            stage.file(name, CONTENTS, *batches)

    return scene


def _template(name, edit):
    return lambda stage: stage.template(name, edit)


def _without_associations(stage):
    """A project where schema_condor.sql was never applied."""
    _b1()(stage)
    stage.without_table("batch_file_assoc")


def _multi(stage):
    stage.batch(297, f"{RUN}multi", app="multi")
    two = {0: b"out0", 1: b"out1"}
    stage.job(238, f"{RUN}mu1", 297, "done", app="multi", files=two)
    stage.job(239, f"{RUN}mu2", 297, "done", app="multi", files={**two, 2: b"optional"})


def _optmid(stage):
    stage.batch(299, f"{RUN}optmid", app="optmid")
    stage.job(240, f"{RUN}om1", 299, "done", app="optmid", files={0: b"out0", 2: b"out2"})


def _zipped(stage):
    stage.batch(298, f"{RUN}zip", app="zipped")
    stage.job(241, f"{RUN}z1", 298, "done", app="zipped")


def _deleted(stage):
    stage.batch(295, f"{RUN}tpl")
    stage.job(234, f"{RUN}tpl", 295, "done")
    stage.core.upload.remove(f"{RUN}tpl_0_r799338679_0")


def _dup(stage):
    stage.batch(214, f"{RUN}dup")
    stage.job(173, f"{RUN}d0", 214, "done")
    stage.job(174, f"{RUN}d2", 214, "failed", exit_status=-5)


def _old_b1(stage):
    _b1()(stage)
    with stage.core.db.write() as connection:
        connection.execute("UPDATE workunit SET mod_time = 1")


def _nothing(_stage):
    """Leave the project empty."""


_DONE = _b1(j1="done", j2="failed", j3="aborted", j4="aborted")
_PART = _b1(j1="in_progress", j3="aborted", j4="aborted")
_AB = _jobs(306, "ab", "ab1", "ab2", state="aborted", batch_state=BatchState.ABORTED)
_RT = _jobs(307, "rt", "rt1", "rt2", state="aborted")
_INIT = BatchState.INIT
_EMPTY = {212: "exp", 215: "dup2", 216: "miss", 221: "retired"}
#: What most recordings find beside the first batch.
_OTHERS = _all(
    _multi,
    _optmid,
    _zipped,
    *(_batch(number, name, _INIT) for number, name in _EMPTY.items()),
    _batch(217, "nojobs"),
    _batch(302, "fp"),
    _jobs(213, "wn", "wn0", state="in_progress"),
    _jobs(218, "noname", "uppercase_1", "uppercase_2"),
    _batch(289, "avn"),
    lambda stage: stage.job(232, f"{RUN}avn1", 289),
    _jobs(295, "tpl", "tpl"),
)

#: What others find instead.
SCENES = {
    "create_batch__ok": _nothing,
    "query_batch2__min_mod_time_future": _old_b1,
    "query_batch2__min_mod_time_recent": _old_b1,
    "create_batch__duplicate_name": _b1(),
    "create_batch__name_of_retired_batch": _batch(307, "rt", BatchState.RETIRED),
    "abort_batch__again": _batch(306, "ab", BatchState.ABORTED),
    "abort_batch__ok": _jobs(306, "ab", "ab1", "ab2"),
    "query_batch2__after_abort": _b1(j3="aborted", j4="aborted"),
    "query_batch2__after_abort_batch": _AB,
    "query_batch2__after_done_and_error": _all(_DONE, _dup),
    "query_batch2__after_dup_failure": _batch(214, "dup", _INIT),
    "query_batch2__after_retire": _RT,
    "query_batch2__name_of_retired_batch_reused": _all(_RT, _batch(308, "rt", _INIT)),
    "query_batch2__duplicate_name_created_twice": _all(_b1(), _batch(206, "b1", _INIT)),
    "query_batch2__one_in_progress": _PART,
    "query_batch2__two_batches": _all(_b1(), _jobs(297, "multi", "mu1", "mu2", app="multi")),
    "query_batch2__two_batches_same_name": _all(
        _jobs(219, "newname", "nb1"), _jobs(220, "newname", "nb2")
    ),
    "query_batch__after_abort_batch": _AB,
    "query_batch__after_dup_failure": _batch(214, "dup", _INIT),
    "query_batch__by_name": _jobs(297, "multi", "mu1", "mu2", app="multi"),
    "query_batch__details_after": _DONE,
    "query_batch__details_failed": _dup,
    "query_batch__details_in_progress": _PART,
    "query_batches__dave_none": _nothing,
    "query_completed_job__failed": _dup,
    "query_completed_job__in_progress": _PART,
    "query_completed_job__success_nonascii_cmdline_in_stderr": _jobs(
        230, "cl", "cl_nonascii", state="done"
    ),
    "query_files__all_absent": _nothing,
    "query_files__some_absent": _staged(EA),
    "query_files__after_mixed_immutable": _staged(EA, f"{RUN}h1"),
    "query_files__present_with_batch_id_assoc_exists": _staged(EA, CC, batches=(205,)),
    "query_files__batch_of_other_user": _staged(EA, CC, batches=(205,)),
    "query_job__failed": _dup,
    "retire_batch__again": _batch(307, "rt", BatchState.RETIRED),
    "retire_batch__with_unsent_jobs": _jobs(307, "rt", "rt1", "rt2"),
    "get_templates__template_file_missing": _template("optmid_out", None),
    "get_templates__template_with_xml_prolog": _template(
        "optmid_in", lambda text: f'<?xml version="1.0"?>\n{text}'
    ),
    # PHP 8's libxml loads no file there: the project refuses it as one that is no XML.
    "estimate_batch__UNPATCHED_HEAD_template_entity_loader_bug": _template(
        "uppercase_in", lambda _: "no XML"
    ),
    "submit_batch__UNPATCHED_HEAD_template_entity_loader_bug": _template(
        "uppercase_in", lambda _: "no XML"
    ),
    "query_files__no_schema_condor_with_batch_id": _all(_staged(EA), _without_associations),
    "upload_files__no_schema_condor_with_batch_id": _without_associations,
    "upload_files__no_schema_condor_no_batch_id": _without_associations,
    "get_output__workunit_file_not_finished": _b1(),
    "query_completed_job__not_finished_no_instances": _b1(),
    "get_output__batch_files_no_outputs": _batch(206, "b1", _INIT),
    "get_output__result_file_deleted_by_server": _deleted,
    "get_output__workunit_file_deleted_by_server": _deleted,
    "get_output__workunit_file_failed_job": _dup,
    "submit_batch__again_same_request_not_init": _all(_staged(EA), _b1()),
    "submit_batch__dup_job_name_existing_in_middle": _all(
        _staged(EA), _b1(), _batch(214, "dup", _INIT)
    ),
    "submit_batch__batch_id_0_existing_batch_name": _all(
        _staged(EA), _batch(219, "newname", _INIT)
    ),
    "submit_batch__no_such_batch_id": _staged(EA),
    "submit_batch__retired_batch": _all(_staged(EA), _batch(221, "retired", BatchState.RETIRED)),
    "submit_batch__mode_inline_empty": _all(
        _batch(280, "inl0", _INIT),
        lambda stage: stage.core.download.add_bytes("jf_d41d8cd98f00b204e9800998ecf8427e", b""),
    ),
    "upload_files__already_present_same_content": _staged(EA),
    "upload_files__immutability_violation": _staged(EA),
    "upload_files__mixed_good_then_immutable": _staged(EA),
}


def scene_of(recording):
    """Return what a recording needs: a scene of its own, or its RPC's usual one."""
    return SCENES.get(recording.name) or _usual(recording)


def _usual(recording):
    case, text = recording.case, recording.request.decode("utf-8", "replace")
    if recording.rpc == "submit_batch":
        batch = re.search(r"<batch_id>([1-9]\d*)<", text)
        staged = _staged(EA, CC)
        return _all(staged, _batch(int(batch[1]), "any", _INIT)) if batch else staged
    usual = {
        "upload_files": _nothing,
        "query_files": _staged(EA, CC) if EA in text else _nothing,
        "query_batches": lambda stage: _two_of_dave(stage, case),
        **dict.fromkeys(("get_output", "query_job", "query_completed_job"), _all(_DONE, _OTHERS)),
    }
    if recording.rpc == "query_batch2" and case.startswith("jobname"):
        return lambda stage: _named(stage, recording)
    return usual.get(recording.rpc) or _all(_b1(), _OTHERS)


def _two_of_dave(stage, case):
    stage.batch(303, f"{RUN}dv1", user="dave")
    stage.job(500, f"{RUN}dave", 303)
    if case == "name_with_ampersand_unescaped":
        stage.batch(304, f"{RUN} sp & <x>")
        stage.batch(305, f"{RUN}retired", BatchState.RETIRED)


def _named(stage, recording):
    """A batch with the job that the recorded reply shows, if there is one."""
    batch = re.search(r"<batch_name>(.*?)<", recording.request.decode())
    job = re.search(r"<job_name>(.*)</job_name>", recording.body.decode("utf-8", "replace"))
    assert batch
    stage.batch(250, batch[1])
    if job:
        stage.job(251, job[1], 250)
