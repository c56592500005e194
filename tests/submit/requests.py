"""Requests, and templates that jobs bring along."""

from boinc_gahp.submit.types import SubmitRequest


def uppercase(name, *jobs, app="uppercase", **more):
    """Return a request for jobs that are called as their batch, a dash and a number."""
    return SubmitRequest(name, app, [(f"{name}-{n}", job) for n, job in enumerate(jobs)], **more)


def own_input(*open_names, more=""):
    """Return an input template with these files, and more of its workunit."""
    infos = "<file_info><no_delete/></file_info>" * len(open_names)
    refs = "".join(
        f"<file_ref><open_name>{name}</open_name><copy_file/></file_ref>" for name in open_names
    )
    return f"<input_template>{infos}<workunit>{refs}{more}</workunit></input_template>"


def own_output(open_name):
    return (
        "<output_template><file_info><name><OUTFILE_0/></name><generated_locally/>"
        "<upload_when_present/><max_nbytes>7777777</max_nbytes><url><UPLOAD_URL/></url>"
        "</file_info><result>\n<file_ref><file_name><OUTFILE_0/></file_name>"
        f"<open_name>{open_name}</open_name></file_ref></result></output_template>"
    )
