"""Each kind of error through four borders: a command, the Python API, HTCondor, Snakemake.

The class says whether the same may succeed later, whether the project may still be at it, and
whether a batch is lost by it. All four go by that, and who reads about an error sees its code.
"""

import inspect
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from boinc_gahp.api.manifest_files import ManifestJournal
from boinc_gahp.cli import main as command_line
from boinc_gahp.cli.batch.jsons import error_json
from boinc_gahp.cli.batch.submitting import _how_to_continue, submit_parser
from boinc_gahp.errors import OutputError, ProtocolError, StagingError, TransportError
from boinc_gahp.htcondor._sending_action import Action, Attempt, action_after, hold_for
from boinc_gahp.ledger.rows import BatchRow
from boinc_gahp.submit.journal import SubmitState
from tests.helpers import error_classes

#: For what a class's instances have to be given.
GIVEN = {"rpc": "submit_batch", "host": "p", "number": -1, "words": "w", "said": "b", "job": "j"}
GIVEN |= {"nbytes": 9, "what": "input template", "problems": [], "message": "the text"}
GIVEN |= {"text": "the text", "extra": "docs", "purpose": "it"}

BATCH = BatchRow(1, "bg-1", "https://p/", "a", "app", "t", "planned", None, 0, 0, 0, None)
#: Nothing was sent, and the batch has several jobs.
ATTEMPT = Attempt(SubmitState(7), 10)


def made(kind, **more):
    """Return an error of a class."""
    wanted = inspect.signature(kind.__init__).parameters.values()
    empty = inspect.Parameter.empty
    positional = inspect.Parameter.VAR_POSITIONAL
    if any(each.kind is positional for each in wanted):
        return kind("the text")
    needed = [each.name for each in wanted if each.default is empty and each.name != "self"]
    by_name = {name: GIVEN[name] for name in needed} | more
    first = [by_name.pop(name) for name in needed[:1]]
    return kind(*first, **by_name)


ERRORS = {kind.__name__: made(kind) for kind in error_classes()}
ERRORS |= {
    "TransportError that lasts": made(TransportError, passes=False, may_be_running=False),
    "ProtocolError of a crash": made(ProtocolError, php_fatal=True),
    "StagingError of a file": made(StagingError, path="/f"),
    "OutputError that passes": made(OutputError, passes=True),
}
each_error = pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)


@each_error
def test_who_reads_of_an_error_sees_its_code(error, monkeypatch, capsys):
    def fail(_):
        raise error

    monkeypatch.setattr(command_line, "_run", fail)
    assert command_line.main([]) == 1
    shown = f"{error} [{error.code}]"
    assert " ".join(capsys.readouterr().err.split()) == " ".join(f"boinc_gahp: {shown}".split())
    assert error_json(error)["code"] == error.code
    assert hold_for(error, BATCH).reason.endswith(f"[{error.code}]")


@dataclass(frozen=True)
class Kept:
    """As much of a manifest as the Python API changes when a submit has failed."""

    refused: bool = False


def is_given_up_by_the_api(error):
    written = []
    journal = SimpleNamespace(
        _sent=True,
        _old=Kept(),
        _request=SimpleNamespace(batch_name="b"),
        _manifests=SimpleNamespace(write=lambda _, kept, *, new: written.append(kept)),  # noqa: ARG005
        _drop=lambda _: None,
    )
    ManifestJournal.failed(journal, SubmitState(7), error)
    return written == [Kept(refused=True)]


@each_error
def test_what_may_pass_or_still_run_is_given_up_nowhere(error):
    options = submit_parser().read(["app", "--split"])
    told = _how_to_continue(None, options, None, error)
    assert told.startswith("to continue: ") is not error.is_final
    assert ("another --name" in told) is (error.is_final and error.spoils_batch)
    assert is_given_up_by_the_api(error) is error.is_final
    if error.passes:
        assert action_after(ATTEMPT, error) is Action.LATER


@each_error
def test_a_workflow_ends_only_with_what_lasts(error):
    pytest.importorskip("snakemake_interface_executor_plugins")
    from boinc_gahp.workflows.snakemake.executor import Executor

    def fail(_):
        raise error

    warned = []
    executor = SimpleNamespace(
        _cancelled=False, _earlier=fail, logger=SimpleNamespace(warning=warned.append)
    )
    if error.is_final:
        with pytest.raises(type(error)):
            Executor._submit(executor, [])
    else:
        Executor._submit(executor, [])
        assert warned == [f"the jobs will be submitted later: {error}"]
