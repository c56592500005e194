"""Submit files' texts."""

#: Files of a job of ``uppercase``.
FILES = ("transfer_input_files = in", "transfer_output_files = out")
#: Where the outputs of a cluster's jobs go.
NUMBERED = (FILES[1], 'transfer_output_remaps = "out = out.$(Process)"')


def grid(app, *lines, queue="queue"):
    """Return a job for the grid universe, with more lines of a submit file."""
    return _job(
        "universe = grid",
        "grid_resource = batch boinc",
        f'+remote_BoincApp = "{app}"',
        f"executable = {app}",
        *lines,
        queue=queue,
    )


def vanilla(app, *lines, queue="queue"):
    """Return an ordinary job that the Job Router is to send."""
    return _job(
        "universe = vanilla",
        f'+BoincApp = "{app}"',
        f"executable = {app}",
        "should_transfer_files = yes",
        "when_to_transfer_output = on_exit",
        *lines,
        queue=queue,
    )


def _job(*lines, queue):
    return "\n".join([*lines, "transfer_executable = false", "log = job.log", queue, ""])


def words(arguments):
    """Return the line that gives a job these arguments (V2 syntax)."""
    return f"arguments = {_quoted(arguments)}"


def environment(variables):
    """Return the line that gives a job these variables."""
    return f"environment = {_quoted([f'{name}={value}' for name, value in variables.items()])}"


def _quoted(texts):
    quoted = " ".join("'{}'".format(text.replace("'", "''")) for text in texts)
    # What looks like a macro is none.
    return '"{}"'.format(quoted.replace('"', '""').replace("$(", "$(DOLLAR)("))
