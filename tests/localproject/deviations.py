"""Where the sane profile answers otherwise than it was recorded, and why.

All other recordings both profiles answer as the real server did.
"""

from __future__ import annotations

from tests.localproject.recordings import RUN

#: How the sane profile differs: the outcome, and why it is wanted.
DEVIATIONS: dict[str, tuple[tuple[object, ...], str]] = {
    "create_batch__name_256_chars": (("fatal", ""), "the message is not shown"),
    "create_batch__duplicate_name": (
        ("error", -1, f"there is a batch named {RUN}b1 already"),
        "a second batch of a name could never be found",
    ),
    "create_batch__name_of_retired_batch": (
        ("error", -1, f"there is a batch named {RUN}rt already"),
        "a second batch of a name could never be found",
    ),
    "submit_batch__batch_id_0_existing_batch_name": (
        ("error", -1, f"there is a batch named {RUN}newname already"),
        "a second batch of a name could never be found",
    ),
    "query_batch2__name_xml_specials": (
        ("error", -1, f"no batch named {RUN[:-1]} sp & <x> \"q\" 'a'"),
        "the name is not escaped twice",
    ),
    "submit_batch__output_template_filename_missing": (
        ("error", -1, "create_work failed: can't open templates/nosuch_out"),
        "success without any job is nothing to wish for",
    ),
    "upload_files__name_192_chars": (
        ("error", -1, "bad filename"),
        "nothing is stored of what cannot be recorded",
    ),
}
for _case in ("cmdline_squotes", "jobname_char_squote", "jobname_char_backslash"):
    DEVIATIONS[f"submit_batch__{_case}"] = (("success", ("batch_id",)), "SQL is never injected")
for _case in ("already_present_same_content", "same_name_twice_in_request"):
    DEVIATIONS[f"upload_files__{_case}"] = (
        ("success", ("success",)),
        "the file is there, as was wanted",
    )
for _case in ("present_with_batch_id_assoc_exists", "same_name_twice_with_batch_id"):
    DEVIATIONS[f"query_files__{_case}"] = (
        ("success", ("absent_files",)),
        "the association is there, as was wanted",
    )
DEVIATIONS["query_files__batch_of_other_user"] = DEVIATIONS[
    "query_files__present_with_batch_id_assoc_exists"
]
DEVIATIONS["query_files__delete_time_later_than_record"] = (
    ("success", ("absent_files",)),
    "the time was put off, as was wanted",
)
_COMPLETED = ("completed_job", "error_mask")
_ERROR = ("cpu_time", "elapsed_time", "error_resultid", "exit_status", "stderr_out")
for _case in ("aborted_job", "in_progress", "not_finished_no_instances"):
    DEVIATIONS[f"query_completed_job__{_case}"] = (
        ("success", _COMPLETED),
        "a job without canonical instance is described too",
    )
DEVIATIONS["query_completed_job__failed"] = (
    ("success", tuple(sorted(_COMPLETED + _ERROR))),
    "a job without canonical instance is described too",
)
for _case in ("num_negative", "num_out_of_range"):
    DEVIATIONS[f"get_output__workunit_file_{_case}"] = (
        ("text", f"ERROR: bad file num: {'-1' if 'neg' in _case else '5'} > 1"),
        "a number that is out of range is an error",
    )
DEVIATIONS["get_output__workunit_file_multi_2_optional_absent"] = (
    ("text", f"ERROR: no such file: {RUN}mu1_0_r799338679_2"),
    "an absent file is an error",
)
DEVIATIONS["get_output__workunit_file_optmid_1_optional_absent_gives_out2"] = (
    ("text", f"ERROR: no such file: {RUN}om1_0_r799338679_1"),
    "a file number is the template's",
)
DEVIATIONS["get_output__workunit_file_optmid_2"] = (
    ("file", f"{RUN}om1_0_rR_2"),
    "a file number is the template's",
)
for _length in (190, 191):
    DEVIATIONS[f"submit_batch__jobname_len_{_length}"] = (
        (
            "error",
            -1,
            f"create_work failed: the job's name has {_length} characters: expected at most 189, "
            "so that its results' names fit into 191",
        ),
        "it would stop the transitioner for ever",
    )
for _rpc in ("query_files", "upload_files"):
    DEVIATIONS[f"{_rpc}__no_schema_condor_with_batch_id"] = (
        ("fatal", ""),
        "the message is not shown",
    )

#: get_output.php's errors are text and call themselves HTML; in the sane profile they are what they
#: are, so that no browser takes what they repeat of an address for HTML.
TEXT_TYPE = "text/plain; charset=utf-8"

# Sentences of ``web-rpcs.rst`` that are not true of our project in either profile, and why:
# - OLDPHP: a failed SQL query returns false: PHP 8.0 is no longer supported by its makers; what
#   is modelled are STOCK (as it is) and QUIET (the same without display_errors).
# - after a reply of 100,000 jobs a later request got an empty body: one Apache process had run
#   out of memory; no program can rely on that to happen.
# - all of a request that cannot be parsed is echoed: 64 KB of it are: who sends it needs no
#   account, and what is not read of an answer waits in memory.
# - the connection stays open 5 s after too few bytes: it is closed at once, so that a client
#   sees the same cut-off reply without waiting for it.
# - local and semilocal read anything: a project for trying out must not hand out its host's
#   files: local/ below the project, and http://127.0.0.1, are all that they reach.
# - libxml2 complains more than once about one request: our parser stops at the first error;
#   what follows from that one is not told.
# - allocation_priority works with one rsc_fpops_est per job: it is accepted then, but there is
#   no adjust_user_priority: the jobs keep the priority that they have without.
# - the real file deleter does not know who else uses a file: back-end.rst: every template that
#   the project writes has no_delete; with another template it deletes as the real one.
# - query_batch2 asks the database once per unfinished job: the statuses are the same, sooner.
# - replies are in no order that the SQL promises: jobs come in the order of their ids.
