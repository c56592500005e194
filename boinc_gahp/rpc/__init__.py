"""A BOINC project's web RPCs, the layer below the Python API for remote job submission.

::

    with WebRpcs("https://boinc.example.edu/test/", authenticator) as project:
        for batch in project.query_batches():
            print(batch.name, batch.state.name, batch.njobs)
"""
