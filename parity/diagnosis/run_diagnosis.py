"""Why a run of many steps diverges: which fault runs just as the port did.

As in parity.diagnosis.diagnose, the reference makes the run again with each
fault in it. A cause is named only if every number is then what the port
computed, and again in a second run, on other inputs.
"""

import contextlib

import numpy as np

from parity import ports
from parity.causes import catalogue
from parity.diagnosis.diagnose import MOST, Finding, put_into_reference


class RunDiagnosis:
    """Looks for the causes of a run that diverges; as diagnose.Diagnosis.

    Attributes:
        case: what the run is called.
        step: of a run that fails.
        limit: of most that is compared.
        topics: those of the causes that such a run can have.
        probes: the run, and another that has to show the same.
    """

    def __init__(self, case, step, limit, topics, probes):
        self.case, self.step, self.limit = case, step, limit
        self.topics, self.probes, self._replays = topics, probes, {}

    def answers(self, engine, probe):
        """All that an engine computes in a probe."""
        raise NotImplementedError

    def first_divergence(self, actual, truth):
        """The first step in which two answers differ and a Difference."""
        raise NotImplementedError

    def findings(self, engine):
        """What is wrong with a port: a list of Findings, the first first."""
        findings: list = []
        allowed: tuple = ()
        try:
            ours = [self.answers(engine, probe) for probe in self.probes]
        except Exception as error:
            words = f"{type(error).__name__}: {error}".splitlines()[0]
            return [Finding(
                self.case, self.step, None, self.limit, words[:200], ())]
        while len(findings) < MOST:
            first = self.first_divergence(ours[0], self._replay(0, allowed))
            if first is None:
                break
            step, difference = first
            causes = tuple(
                fault for fault in catalogue.faults()
                if fault.topic in self.topics and fault not in allowed
                and all(self._same(number, mine, (*allowed, fault))
                        for number, mine in enumerate(ours)))
            findings.append(Finding(self.case, step, difference.error,
                                    self.limit, difference.reason, causes))
            if not causes:
                break
            allowed += (causes[0],)
        return findings

    def _same(self, number, actual, faults):
        replayed = self._replay(number, faults)
        return (replayed is not None
                and self.first_divergence(actual, replayed) is None)

    def _replay(self, number, faults):
        """The reference's run with faults; None if it fails."""
        key = number, tuple(fault.name for fault in faults)
        if key not in self._replays:
            self._replays[key] = None
            with (contextlib.suppress(Exception) if faults
                  else contextlib.nullcontext()):
                with put_into_reference(*faults), np.errstate(all="ignore"):
                    self._replays[key] = self.answers(
                        ports.engine("numpy"), self.probes[number])
        return self._replays[key]
