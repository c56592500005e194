"""``boinc_gahp batch submit``: jobs from options, rows and files."""

import json
import re
import sys

import pytest

from boinc_gahp.templates.types import InputTemplate, OutputFileInfo, OutputTemplate
from boinc_gahp.templates.writing import write_output_template
from tests.cli.conftest import write_settings
from tests.inside import change, write_templates

UPPERCASE = ("submit", "uppercase")
ONE = (*UPPERCASE, "--input", "in=in.txt")


@pytest.fixture
def data(here):
    """The working directory, with a directory of two input files that the project does not have."""
    (here / "data").mkdir()
    for name in ("b 2.txt", "a.1.txt"):
        (here / "data" / name).write_text(f"{here} {name}\n")
    return here


@pytest.fixture
def sent(site, batch, data):
    """Submits jobs; returns the names, without the batch's, and the command lines that are made."""

    def sent(*words):
        document = batch.json(*UPPERCASE, *words)
        rows = site.project.core.db.connection().execute(
            "SELECT name, xml_doc FROM workunit WHERE batch = ? ORDER BY id", (document["id"],)
        )
        line = re.compile(r"<command_line>\s*(.*?)\s*</command_line>", re.DOTALL)
        return [
            (name.replace(document["name"], "BATCH"), "".join(line.findall(text)))
            for name, text in rows
        ]

    return sent


def test_one_job_is_submitted_and_what_comes_next_is_reported(site, batch, here):
    found = re.fullmatch(
        r"Batch (\d+) 'uppercase-\d{8}-\d{6}-[a-z]{4}': 1 job of uppercase on 127\.0\.0\.1:\d+\.\n"
        r"The project keeps it until 2[-\d]+ [:\d]+ \(14 days\); "
        r"wait and fetch extend this\.\n"
        r"Next:\n  boinc_gahp batch wait \1\n  boinc_gahp batch fetch \1\n",
        batch.prints(*ONE),
    )
    assert found
    assert len(list(site.rpc.iter_jobs(int(found[1])))) == 1


def test_a_project_that_was_named_is_named_in_what_comes_next(site, batch, here):
    config = here / "more.toml"
    write_settings(config, site.project.url, site.project.authenticator, section="projects.other")
    out = batch.prints(*ONE, "--config", config, "--project", "other")
    assert re.search(rf"batch wait \d+ --project other --config {config}\n", out)


def test_options_make_jobs_that_differ_in_their_number_or_file(sent, tag):
    inputs = ("--input", "in=data/a.1.txt")
    assert sent(*inputs, "--args", "-s {index} {{}}", "--count", "3") == [
        (f"BATCH_{n}", f"-s {n} {{}}") for n in range(3)
    ]
    args = "-v --n={index:3} {stem}"
    assert sent("--each", "data/a*", "--args", args) == [("BATCH_0", "-v --n=000 a.1")]
    names = ("--name-jobs", f"{tag}_{{index:2}}")
    assert sent("--args", "-v", "--each", "data/*", "data/b 2.txt", *names) == [
        (f"{tag}_00", "-v"),
        (f"{tag}_01", "-v"),
    ]


def test_columns_that_set_something_are_told_and_can_be_data(batch, here):
    (here / "params.csv").write_text("name,delay,memory\nada,2d,3GB\n")
    words = (*ONE, "--rows", "params.csv", "--dry-run")
    assert batch(*words)[2] == (
        "boinc_gahp: params.csv: columns name, delay and memory set the jobs' names, deadlines "
        "and memory; --as-data COLUMN makes one a parameter only\n"
    )
    as_data = [word for name in ("name", "delay", "memory") for word in ("--as-data", name)]
    assert "ada 2d 3GB" in batch.prints(*words, *as_data, "--args", "{name} {delay} {memory}")
    batch.refuses(*UPPERCASE, "--as-data", "x", status=2)


def test_a_table_that_no_placeholder_uses_is_remarked_upon(batch, here):
    (here / "params.csv").write_text("seed,n\n1,2\n")
    words = (*ONE, "--rows", "params.csv", "--dry-run")
    assert batch(*words)[::2] == (
        0,
        "boinc_gahp: params.csv: no placeholder uses the columns (seed, n), so they are only "
        "recorded; --args '--seed {seed}' would give one to the app\n",
    )
    batch.prints(*words, "--args", "{seed}")


@pytest.mark.processes
def test_rows_from_standard_input_with_an_input_for_all(site, batch, here):
    rows = '{"args": ["-n", 1]}\n{"args": "-n 2", "inputs": {"in": {"inline": "x"}}}\n'
    done = batch.piped(*ONE, "--rows", "-", "--json", stdin=rows)
    assert (done.returncode, done.stderr, done.stdout[0]) == (0, "", "{")
    jobs = batch.json("show", json.loads(done.stdout)["id"])["jobs"]
    assert [job["args"] for job in jobs] == [["-n", "1"], ["-n", "2"]]


def test_the_same_name_again_finds_it_done(batch, data, tag):
    words = (*UPPERCASE, "--each", "data/*", "--name", f"again {tag}")
    first = batch.prints(*words)
    assert "already" not in first
    head, rest = first.split("\n", 1)
    said = "It was there already, with these jobs: nothing was sent."
    assert batch.prints(*words) == f"{head}\n{said}\n{rest}"
    document = batch.json(*words)
    assert (document["existed"], document["compared"]) == (True, True)


@pytest.mark.processes
def test_the_same_name_with_other_arguments_is_refused_here_and_told_elsewhere(batch, data, tag):
    words = (*UPPERCASE, "--each", "data/*", "--name", f"other {tag}")
    batch.prints(*words)
    err = batch.refuses(*words, "--args", "-x")
    assert batch(*words, "--args", "-x", "--dry-run")[0] == 1
    assert "was submitted with other jobs" in err
    assert "arguments of " in err
    assert err.count("give it another name: --name") == 1
    done = batch.piped(*words, "--args", "-x", XDG_STATE_HOME=str(data / "elsewhere"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "It was there already, with jobs of these names: nothing was sent.\n" in done.stdout
    assert "Their arguments and files were not compared: " in done.stdout


def test_templates_of_ones_own_and_on_the_project(sent, data, site, tag):
    templates = site.project.core.directory / "templates"
    for kind, suffix in (("input", "in"), ("output", "out")):
        text = (templates / f"uppercase_{suffix}").read_text()
        (data / f"{kind}.xml").write_text(text)
        (templates / f"mine_{tag}_{suffix}").write_text(text)
    own = ("--input-template", "input.xml", "--output-template", "output.xml")
    assert len(sent("--each", "data/*", *own)) == 2
    there = ("--input-template", f"project:mine_{tag}_in")
    assert len(sent("--each", "data/*", *there, "--input", "in={path}")) == 2


def test_templates_that_let_the_project_delete_outputs_are_warned_of(site, batch, here):
    output = OutputTemplate((OutputFileInfo("out", "<OUTFILE_0/>", max_nbytes=1e6),))
    site.project.add_app("greedy", "true", outputs="out")
    write_templates(site.project, "greedy", InputTemplate(), output)
    told = "boinc_gahp: app greedy: the output template lacks <no_delete/> for out: "
    for more in (["--dry-run"], []):
        status, _, err = batch("submit", "greedy", *more)
        assert (status, err.startswith(told), err.count("\n")) == (0, True, 1)
    (here / "out.xml").write_text(write_output_template(output))
    batch.prints("submit", "greedy", "--output-template", "out.xml", "--dry-run")


# -- what is refused


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rows", "r", "--each", "d"], "--rows and --each do not go together"),
        (["--each", "d", "--count", "3"], "--each and --count do not go together"),
        (["--args", "{stem}"], "{stem} is not a placeholder; there are {index}, {batch}"),
        (["--args", "{stem}"], "stem are for files of --each, and there is no --each"),
        (["--count", "0"], "a number from 1 to 1000000 is expected"),
        (["--memory", "2"], "2 bytes of memory: did you mean 2MB or 2GB? (2B is taken as it is)"),
        (["--lease", "30"], "a lease of 30 s: did you mean 30h or 30d?"),
        (["--input", "data/a.1.txt"], "expected NAME=FILE"),
        (["--input", "in=a", "--input", "in=b"], "is given twice"),
    ],
)
def test_what_does_not_go_together_is_reported(batch, words, said):
    assert said in batch.refuses(*UPPERCASE, *words, status=2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--each", "nothing/*"], "matches no file (looked for from "),
        (["--each", "data"], "matches only directories"),
        (
            ["--each", "data/*", "--input", "in=x"],
            "--input already gives all inputs of uppercase (in): name the one",
        ),
        (["--each", "data/*", "--input-template", "project:x"], "--input NAME={path}"),
        (["--input-template", "nothing.xml"], "'nothing.xml' cannot be read: No such file"),
        (["--input-template", "data/a.1.txt"], "boinc_gahp template check tells more"),
        (["--output-template", "data/a.1.txt"], "boinc_gahp template check tells more"),
        (["--rows", "empty.csv"], "it has no rows"),
        (["--rows", "rows.csv", "--input", "in={name}"], "boinc_gahp uses this column itself"),
    ],
)
def test_what_is_wrong_is_reported_in_a_line(batch, data, words, said):
    (data / "empty.csv").write_text("name,args\n\n")
    (data / "rows.csv").write_text("name,args,n\n,-x,\n")
    told, *rest = batch.refuses(*UPPERCASE, *words).splitlines()
    assert said in told
    assert told.startswith("boinc_gahp: ")
    assert all(line.startswith("boinc_gahp: to continue, once that is fixed: ") for line in rest)


def test_jobs_for_a_version_that_nobody_has_are_told_to_stay_queued(batch, here, tag):
    words = (*ONE, "--app-version", "999")
    told = "only with version 999 of uppercase. A project does not tell which versions it has: "
    for more in (["--dry-run"], ["--name", tag]):
        assert told in batch.prints(*words, *more)
    assert told in batch.prints("show", tag)
    status, _, err = batch("wait", tag, "--timeout", "0.1")
    assert status == 5
    assert told in err


def test_what_cannot_be_kept_or_read_on_this_machine_is_told(site, batch, here, tag, monkeypatch):
    (here / "no directory").write_text("")
    for number, directory in enumerate(("no directory", "state")):
        config = write_settings(
            here / "s.toml",
            site.project.url,
            site.project.authenticator,
            f"[state]\ndir = '{here / directory}'\n",
        )
        monkeypatch.setenv("BOINC_GAHP_CONFIG", str(config))
        status, _, err = batch(*ONE, "--name", f"{tag}{number}")
        assert (status, "cannot be kept on this machine" in err) == (0, not number)
    (manifest,) = (here / "state" / "submitted").glob("*.json.gz")
    manifest.write_bytes(manifest.read_bytes()[:-9])
    status, out, err = batch("show", f"{tag}1")
    assert (status, err.count(str(manifest))) == (0, 1)
    assert f"{tag}1_0" in out


def test_a_program_that_was_edited_is_told_instead_of_silently_given_its_old_results(
    site, batch, here, tag
):
    script = here / "decay.py"
    script.write_text("open('out', 'w').write('1')\n")
    command = [sys.executable, str(script)]
    site.project.add_app("decay", command=command, inputs=["in"], outputs=["out"])
    words = ("submit", "decay", "--input", "in=inline:x", "--name", tag)
    assert "another version" not in batch.prints(*words) + batch.prints(*words)
    script.write_text("open('out', 'w').write('2')\n")
    # A project's times are whole seconds.
    change(site.project, "UPDATE batch SET create_time = create_time - 5")
    out = batch.prints(*words)
    assert "It was there already" in out
    assert "Its app has had another version, 1.01, since then" in out
