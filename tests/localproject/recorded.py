"""The recorded requests that our project answers as the real server did, in both profiles.

By RPC, the names of the cases. Together with ``deviations.py``, all of ``tests/contract/wire``.
"""

from __future__ import annotations

AS_RECORDED: dict[str, str] = {
    "abort_batch": """
        again init_batch ok unknown
    """,
    "abort_jobs": """
        again_same first_ok_second_unknown in_progress_job_of_retry_batch none not_owner ok_one
        unknown_job
    """,
    "create_batch": """
        bad_authenticator carol_other_app carol_own_app_ok empty_authenticator expire_time_future
        name_255_chars name_nonascii_utf8 name_xml_specials no_name no_submit_access ok unknown_app
        unknown_app_and_bad_authenticator web_stopped
    """,
    "estimate_batch": """
        UNPATCHED_HEAD_template_entity_loader_bug no_jobs ok per_job_rsc_fpops_est unknown_app
    """,
    "get_output": """
        bad_command batch_files_bad_auth batch_files_by_name batch_files_no_outputs batch_files_ok
        database_down no_cmd result_file_bad_auth result_file_bad_num result_file_deleted_by_server
        result_file_ok result_file_unknown web_stopped workunit_file_after_retire
        workunit_file_deleted_by_server workunit_file_failed_job workunit_file_multi_0
        workunit_file_multi_1 workunit_file_multi_2_optional_present workunit_file_no_auth
        workunit_file_no_num workunit_file_not_finished workunit_file_num_not_int workunit_file_ok
        workunit_file_unknown_job workunit_file_wrong_auth workunit_file_zip
        workunit_files_not_finished workunit_files_ok workunit_files_unknown
    """,
    "get_templates": """
        app_multi app_uppercase app_zipped by_job_name by_job_name_with_own_templates
        carol_other_app neither no_access template_file_missing template_with_xml_prolog unknown_app
        unknown_job
    """,
    "job_file": """
        malformed_xml no_request_field unknown_command
    """,
    "ping": """
        database_down empty_element_tag ok selfclosed_no_space urlencoded_form web_stopped
    """,
    "protocol": """
        404_handler GET_no_body control_char_in_request empty_request gzip_reply_headers
        latin1_bytes_in_request latin1_bytes_with_declaration malformed_ampersand malformed_xml
        no_request_field unknown_command xml_with_declaration_utf8
    """,
    "query_batch2": """
        after_abort after_abort_batch after_done_and_error after_dup_failure after_dup_within
        after_missing_file after_retire bad_authenticator before_all_unsent bob_no_access
        database_down duplicate_name_created_twice empty_init_batch jobname_char_amp
        jobname_char_backslash jobname_char_dash_leading jobname_char_dot jobname_char_lt
        jobname_char_nonascii jobname_char_percent jobname_char_plus jobname_char_quote
        jobname_char_semicolon jobname_char_slash jobname_char_space jobname_char_squote
        jobname_len_190 jobname_len_191 jobname_len_192 jobname_len_200 jobname_len_255
        jobname_len_256 jobname_len_300 jobs_without_names min_mod_time_future
        min_mod_time_injection_text min_mod_time_recent name_case_insensitive
        name_of_retired_batch_reused name_trailing_space no_authenticator no_batches no_min_mod_time
        not_owner one_in_progress output_template_filename_missing two_batches two_batches_same_name
        unknown_batch web_stopped zero_jobs_submitted
    """,
    "query_batch": """
        after_abort_batch after_dup_failure by_id by_id_details_before by_name details_after
        details_failed details_in_progress init_batch none_specified not_owner unknown
        zero_jobs_submitted
    """,
    "query_batches": """
        bob_no_access dave_none get_cpu_time name_with_ampersand_unescaped ok
    """,
    "query_completed_job": """
        no_job_name not_owner success success_nonascii_cmdline_in_stderr unknown
    """,
    "query_files": """
        after_25_files_failed after_mixed_failed after_mixed_immutable all_absent bad_authenticator
        bad_filename bob_no_access empty_filename name_192_chars no_names none_absent
        nonexist_batch_UNPATCHED present_with_batch_id_new_assoc some_absent web_stopped
    """,
    "query_job": """
        done failed multi_outputs no_instances not_owner unknown
    """,
    "retire_batch": """
        again init_batch not_owner ok_done_batch unknown with_unsent_jobs
    """,
    "set_expire_time": """
        no_expire_time not_owner ok_by_id ok_by_name unknown
    """,
    "submit_batch": """
        UNPATCHED_HEAD_template_entity_loader_bug again_same_request_not_init allocation_priority
        app_mismatch_with_batch_app app_version_num app_version_num_nonexistent bad_authenticator
        batch_of_other_user batch_priority cmdline_ampersand cmdline_backslash cmdline_dash_leading
        cmdline_dollar cmdline_double_dash cmdline_dquotes cmdline_dquotes_escaped cmdline_emoji
        cmdline_empty_dq cmdline_hash cmdline_len_10000 cmdline_len_200 cmdline_len_255
        cmdline_len_256 cmdline_len_3000 cmdline_len_3900 cmdline_len_4000 cmdline_len_4200
        cmdline_newline cmdline_newline_inject cmdline_nonascii cmdline_nonascii_urlencoded
        cmdline_percent cmdline_plain cmdline_semicolon_shell cmdline_tab cmdline_trailing_space
        dup_job_name_existing_in_middle dup_job_name_within_request job_params job_priority
        job_target_team jobname_char_amp jobname_char_dash_leading jobname_char_dot jobname_char_lt
        jobname_char_nonascii jobname_char_percent jobname_char_plus jobname_char_quote
        jobname_char_semicolon jobname_char_slash jobname_char_space jobname_len_100 jobname_len_150
        jobname_len_170 jobname_len_180 jobname_len_185 jobname_len_186 jobname_len_187
        jobname_len_188 jobname_len_189 jobname_len_192 jobname_len_200 jobname_len_255
        jobname_len_256 jobname_len_300 jobs_without_names local_staged_file_absent_on_server
        max_jobs_in_progress_9MB_over_post_max mode_inline mode_inline_empty mode_inline_zero
        mode_local mode_local_missing mode_remote mode_remote_url_with_amp_query
        mode_sandbox_missing mode_semilocal mode_unsupported multi_ok no_batch_id_with_batch_name
        no_submit_access no_such_batch_id ok_existing_batch_id optmid_ok
        per_job_input_template_2_files_vs_app_template_1 per_job_templates retired_batch
        retry_same_init_batch_after_dup_failure same_batch_after_wrong_number_error unknown_app
        wrong_number_input_files zero_jobs zipped_ok
    """,
    "upload_files": """
        20_files_ok 25_files_max_file_uploads 2MB_exact 2MB_plus1 3MB_over_upload_max_filesize_2M
        9MB_over_post_max_size_8M bad_authenticator bad_filename bob_no_access empty_file
        immutability_violation mixed_good_then_immutable mixed_one_good_one_too_big name_with_space
        no_schema_condor_no_batch_id ok_one ok_with_batch_id web_stopped wrong_count_fewer_files
        wrong_count_more_files zero_files_zero_names zero_files_zero_names_batch_id
    """,
}
