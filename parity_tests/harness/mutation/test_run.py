"""How mutants are tried: by which process, and what its end tells."""

import pytest

from parity.check.workers import ENDED
from parity.mutation import run
from parity.mutation.results import KILLED, SURVIVED


@pytest.fixture
def hunt(monkeypatch):
    """A Hunt whose process answers what a test appends to ``answers``."""
    one = run.Hunt("torch")
    one.answers, one.closed = [], 0

    def close():
        one.closed += 1

    monkeypatch.setattr(one, "said", lambda *_, patience: one.answers.pop(0))
    monkeypatch.setattr(one, "wanted", lambda mutant, names: ["asked"])
    monkeypatch.setattr(one, "close", close)
    one.seconds["asked"] = 0.1
    return one


@pytest.mark.parametrize("answers, verdict", [
    (["", ENDED, "", ""], SURVIVED), (["", ENDED, "", ENDED], KILLED),
    ([ENDED, "", "wrong"], KILLED), (["", "wrong"], KILLED),
    ([f"{run.LATE} 20 seconds", "", ""], SURVIVED),
    (["", f"{run.LATE} 9 seconds", "", f"{run.LATE} 9 seconds"], KILLED)])
def test_a_process_ends_twice_before_that_counts(hunt, answers, verdict):
    """What kills from outside, or keeps a machine busy, proves nothing."""
    hunt.answers += answers
    assert hunt.tried(hunt.mutants(["masks.py"])[0]).verdict == verdict
    assert not hunt.answers


def test_a_process_is_made_anew_after_many_mutants(hunt, monkeypatch):
    """What a framework compiled for mutants that are gone goes with it."""
    monkeypatch.setattr(run, "FRESH", 3)
    for mutant in hunt.mutants(["masks.py"])[:7]:
        hunt.answers += ["", "wrong"]
        hunt.tried(mutant)
    assert hunt.closed == 2
