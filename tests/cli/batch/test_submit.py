"""``boinc_gahp batch submit``: jobs from options, rows and files."""

import json
import re
import sys

import pytest

from boinc_gahp.templates.types import InputTemplate, OutputFileInfo, OutputTemplate
from boinc_gahp.templates.writing import write_output_template
from tests.cli.conftest import write_settings
from tests.inside import write_templates


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working directory, with two input files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for name in ("b 2.txt", "a.1.txt"):
        (tmp_path / "data" / name).write_text(f"{tmp_path} {name}\n")
    return tmp_path


@pytest.fixture
def sent(site, batch, here):
    def sent(*words):
        status, out, err = batch("submit", *words, "--json")
        assert status == 0, err
        name = json.loads(out)["name"]
        return [
            (job["name"].replace(name, "BATCH"), job["command_line"])
            for job in jobs_of(site, json.loads(out)["id"])
        ]

    return sent


def jobs_of(site, batch_id):
    """Return a batch's workunits, with the command line out of their documents."""
    rows = site.project.core.db.connection().execute(
        "SELECT name, xml_doc, priority FROM workunit WHERE batch = ? ORDER BY id", (batch_id,)
    )
    found = []
    for row in rows:
        line = re.search(r"<command_line>\s*(.*?)\s*</command_line>", row["xml_doc"], re.DOTALL)
        found.append({"name": row["name"], "command_line": line[1] if line else ""})
    return found


def test_one_job_is_submitted_and_what_comes_next_is_reported(site, batch, here):
    status, out, err = batch("submit", "uppercase", "--input", "in=data/a.1.txt")
    assert status == 0, err
    found = re.fullmatch(
        r"Batch (\d+) 'uppercase-\d{8}-\d{6}-[a-z]{4}': 1 job of uppercase on 127\.0\.0\.1:\d+\.\n"
        r"It is kept until 2[-\d]+ [:\d]+ \(14 days\); "
        r"waiting for it and fetching from it keep it longer\.\n"
        r"Next:\n  boinc_gahp batch wait (\d+)\n  boinc_gahp batch fetch (\d+)\n",
        out,
    )
    assert found
    assert found[1] == found[2] == found[3]
    assert len(jobs_of(site, int(found[1]))) == 1


def test_a_project_that_was_named_is_named_in_what_comes_next(site, batch, here):
    config = here / "more.toml"
    write_settings(config, site.project.url, site.project.authenticator, section="projects.other")
    words = ["--config", str(config), "--project", "other"]
    _, out, _ = batch("submit", "uppercase", "--input", "in=data/a.1.txt", *words)
    assert re.search(rf"batch wait \d+ --project other --config {config}\n", out)


def test_jobs_that_differ_in_their_number(sent):
    inputs = ["--input", "in=data/a.1.txt"]
    assert sent("uppercase", *inputs, "--args", "-s {index} {{}}", "--count", "3") == [
        (f"BATCH_{n}", f"-s {n} {{}}") for n in range(3)
    ]


def test_a_job_for_each_file(sent):
    args = "-v --n={index:3} {stem}"
    assert sent("uppercase", "--each", "data/a*", "--args", args) == [("BATCH_0", "-v --n=000 a.1")]
    assert sent("uppercase", "--args", "-v", "--each", "data/*", "data/b 2.txt") == [
        ("BATCH_0", "-v"),
        ("BATCH_1", "-v"),
    ]


def test_jobs_get_names_that_were_asked_for(sent, here):
    tag = here.name
    names = sent("uppercase", "--each", "data/*", "--name-jobs", f"{tag}_{{index:2}}")
    assert [name for name, _ in names] == [f"{tag}_00", f"{tag}_01"]


def test_rows_of_csv_with_files_beside_them(sent, here):
    tag = here.name
    (here / "data" / "rows.csv").write_text(
        f"\ufeffname;args;input:in\r\n{tag}x;-a 1;b 2.txt\r\n;-b;inline:text\r\n", "utf-8"
    )
    assert sent("uppercase", "--rows", "data/rows.csv") == [(f"{tag}x", "-a 1"), ("BATCH_1", "-b")]


def test_rows_are_a_table_of_parameters(sent, here):
    (here / "data" / "params.csv").write_text(
        "seed,n,path,memory\n1,0.10,a.1.txt,2GB\n20,1e3,b 2.txt,\n"
    )
    words = ["--rows", "data/params.csv", "--input", "in={path}"]
    names = ["--name-jobs", "{batch}_{seed:3}"]
    args = ["--args", "--seed {seed} -n={n} {index}/{batch}"]
    assert sent("uppercase", *words, *args, *names, "--name", f"table-{here.name}") == [
        ("BATCH_001", f"--seed 1 -n=0.10 0/table-{here.name}"),
        ("BATCH_020", f"--seed 20 -n=1e3 1/table-{here.name}"),
    ]


def test_columns_that_set_something_are_told_and_can_be_data(batch, here):
    (here / "params.csv").write_text("name,delay,memory\nada,2d,3GB\n")
    words = ["submit", "uppercase", "--rows", "params.csv", "--input", "in=inline:x", "--dry-run"]
    status, _, err = batch(*words)
    assert (status, err) == (
        0,
        "boinc_gahp: params.csv: columns name, delay and memory set the jobs' names, deadlines "
        "and memory; --as-data COLUMN makes one a parameter only\n",
    )
    as_data = [word for name in ("name", "delay", "memory") for word in ("--as-data", name)]
    status, out, err = batch(*words, *as_data, "--args", "{name} {delay} {memory}")
    assert (status, err) == (0, "")
    assert "ada 2d 3GB" in out
    assert batch("submit", "uppercase", "--as-data", "x")[0] == 2


def test_inputs_may_have_placeholders(batch, here):
    shared = ["--input", "in=inline:{{{index}}}"]
    _, out, _ = batch("submit", "uppercase", *shared, "--count", "2", "--dry-run")
    assert re.findall(r"in=inline:(\S+)", out) == ["{0}", "{1}"]
    words = ["--input", "in={path}", "--each", "data/*"]
    _, out, _ = batch("submit", "uppercase", *words, "--dry-run")
    assert re.findall(r"in=(data\S+)", out) == ["data/a.1.txt", "data/b"]


def test_a_table_that_no_placeholder_uses_is_remarked_upon(batch, here):
    (here / "params.csv").write_text("seed,n\n1,2\n")
    words = ["submit", "uppercase", "--rows", "params.csv", "--input", "in=data/a.1.txt"]
    status, _, err = batch(*words, "--dry-run")
    assert status == 0
    assert err == (
        "boinc_gahp: params.csv: no placeholder uses the columns (seed, n), so they are only "
        "recorded; --args '--seed {seed}' would give one to the app\n"
    )
    assert batch(*words, "--dry-run", "--args", "{seed}")[2] == ""


@pytest.mark.processes
def test_rows_from_standard_input_with_an_input_for_all(site, batch, here):
    done = batch.piped(
        "submit",
        "uppercase",
        "--rows",
        "-",
        "--input",
        "in=data/a.1.txt",
        "--json",
        stdin='{"args": ["-n", 1]}\n{"args": "-n 2", "inputs": {"in": {"inline": "x"}}}\n',
    )
    assert (done.returncode, done.stderr, done.stdout[0]) == (0, "", "{")
    listed = jobs_of(site, json.loads(done.stdout)["id"])
    assert [job["command_line"] for job in listed] == ["-n 1", "-n 2"]


def test_the_same_name_again_finds_it_done(batch, here):
    words = ["submit", "uppercase", "--each", "data/*", "--name", f"again {here.name}"]
    status, first, _ = batch(*words)
    assert (status, "already" in first) == (0, False)
    head, rest = first.split("\n", 1)
    said = "It was there already, with these jobs: nothing was sent."
    assert batch(*words) == (0, f"{head}\n{said}\n{rest}", "")
    status, out, err = batch(*words, "--json")
    assert (status, err) == (0, "")
    document = json.loads(out)
    assert (document["existed"], document["compared"]) == (True, True)


@pytest.mark.processes
def test_the_same_name_with_other_arguments_is_refused_here_and_told_elsewhere(batch, here):
    words = ["submit", "uppercase", "--each", "data/*", "--name", f"other {here.name}"]
    assert batch(*words)[0] == 0
    for dry in ([], ["--dry-run"]):
        status, _, err = batch(*words, "--args", "-x", *dry)
        assert status == 1
        assert "was submitted with other jobs" in err
        assert "arguments of " in err
        assert err.count("give it another name: --name") == 1
    done = batch.piped(*words, "--args", "-x", XDG_STATE_HOME=str(here / "elsewhere"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "It was there already, with jobs of these names: nothing was sent.\n" in done.stdout
    assert "Their arguments and files were not compared: " in done.stdout


def test_templates_of_ones_own_and_on_the_project(sent, here, site):
    templates = site.project.core.directory / "templates"
    for kind, suffix in (("input", "in"), ("output", "out")):
        text = (templates / f"uppercase_{suffix}").read_text()
        (here / f"{kind}.xml").write_text(text)
        (templates / f"mine_{here.name}_{suffix}").write_text(text)
    own = ["--input-template", "input.xml", "--output-template", "output.xml"]
    assert len(sent("uppercase", "--each", "data/*", *own)) == 2
    there = ["--input-template", f"project:mine_{here.name}_in"]
    assert len(sent("uppercase", "--each", "data/*", *there, "--input", "in={path}")) == 2


def test_templates_that_let_the_project_delete_outputs_are_warned_of(site, batch, here):
    output = OutputTemplate((OutputFileInfo("out", "<OUTFILE_0/>", max_nbytes=1e6),))
    site.project.add_app("greedy", "true", outputs="out")
    write_templates(site.project, "greedy", InputTemplate(), output)
    told = "boinc_gahp: app greedy: the output template lacks <no_delete/> for out: "
    for more in (["--dry-run"], []):
        status, _, err = batch("submit", "greedy", *more)
        assert (status, err.startswith(told), err.count("\n")) == (0, True, 1)
    (here / "out.xml").write_text(write_output_template(output))
    assert batch("submit", "greedy", "--output-template", "out.xml", "--dry-run")[2] == ""


# -- what is refused


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rows", "r", "--each", "d"], "--rows and --each do not go together"),
        (["--each", "d", "--count", "3"], "--each and --count do not go together"),
        (["--args", "{stem}"], "{stem} is not a placeholder; there are {index}, {batch}"),
        (["--args", "{stem}"], "stem are for files of --each, and there is no --each"),
        (["--count", "0"], "not a whole number"),
        (["--memory", "2"], "2 bytes of memory: did you mean 2MB or 2GB? (2B is taken as it is)"),
        (["--lease", "30"], "a lease of 30 s: did you mean 30h or 30d?"),
        (["--inputs", "in=a"], "did you mean --input?"),
        (["--input", "data/a.1.txt"], "expected NAME=FILE"),
        (["--input", "in=a", "--input", "in=b"], "is given twice"),
    ],
)
def test_what_does_not_go_together_is_reported(batch, words, said):
    status, out, err = batch("submit", "uppercase", *words)
    assert (status, out) == (2, "")
    assert said in err


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
        (["--rows", "nothing.csv"], "nothing.csv: the file with the rows cannot be opened"),
        (["--rows", "empty.csv"], "it has no rows"),
        (["--rows", "rows.csv", "--input", "in={name}"], "boinc_gahp uses this column itself"),
        (["--rows", "rows.csv", "--name-jobs", "{n}"], "rows.csv:2: {n} has no value in this row"),
        ([], 'wants 1 input file ("in"), the job has 0'),
        (["--input", "inn=data/a.1.txt"], '"inn" is none of these, did you mean "in"?'),
    ],
)
def test_what_is_wrong_is_reported_in_a_line(batch, here, words, said):
    (here / "empty.csv").write_text("name,args\n\n")
    (here / "rows.csv").write_text("name,args,n\n,-x,\n")
    status, out, err = batch("submit", "uppercase", *words)
    told, *rest = err.splitlines()
    assert (status, out) == (1, "")
    assert said in told
    assert told.startswith("boinc_gahp: ")
    assert all(line.startswith("boinc_gahp: to continue, once that is fixed: ") for line in rest)


def test_jobs_for_a_version_that_nobody_has_are_told_to_stay_queued(batch, here):
    words = ["submit", "uppercase", "--input", "in=data/a.1.txt", "--app-version", "999"]
    told = "only with version 999 of uppercase. A project does not tell which versions it has: "
    assert told in batch(*words, "--dry-run")[1]
    name = f"version-{here.name}"
    assert told in batch(*words, "--name", name)[1]
    assert told in batch("show", name)[1]
    status, _, err = batch("wait", name, "--timeout", "0.1")
    assert status == 5
    assert told in err


def test_what_cannot_be_kept_or_read_on_this_machine_is_told(site, batch, here, monkeypatch):
    (here / "no directory").write_text("")
    for number, directory in enumerate(("no directory", "state")):
        config = write_settings(
            here / "s.toml",
            site.project.url,
            site.project.authenticator,
            f"[state]\ndir = '{here / directory}'\n",
        )
        monkeypatch.setenv("BOINC_GAHP_CONFIG", str(config))
        words = ("submit", "uppercase", "--input", "in=inline:x", "--name", f"{here.name}{number}")
        status, _, err = batch(*words)
        assert (status, "cannot be kept on this machine" in err) == (0, not number)
    (manifest,) = (here / "state" / "submitted").glob("*.json.gz")
    manifest.write_bytes(manifest.read_bytes()[:-9])
    status, out, err = batch("show", f"{here.name}1")
    assert (status, err.count(str(manifest))) == (0, 1)
    assert f"{here.name}1_0" in out


def test_a_program_that_was_edited_is_told_instead_of_silently_given_its_old_results(
    site, batch, here
):
    script = here / "decay.py"
    script.write_text("open('out', 'w').write('1')\n")
    app = f"decay{here.name.replace('_', '')}"
    command = [sys.executable, str(script)]
    site.project.add_app(app, command=command, inputs=["in"], outputs=["out"])
    words = ["submit", app, "--input", "in=inline:x", "--name", f"decay {here.name}"]
    assert "another version" not in batch(*words)[1] + batch(*words)[1]
    script.write_text("open('out', 'w').write('2')\n")
    # A project's times are whole seconds.
    with site.project.core.db.write() as connection:
        connection.execute("UPDATE batch SET create_time = create_time - 5")
    status, out, _ = batch(*words)
    assert status == 0
    assert "It was there already" in out
    assert "Its app has had another version, 1.01, since then" in out
