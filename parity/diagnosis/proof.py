"""Proof by faults: each is put into each port, and must be caught and named."""

import dataclasses

from transformer_contract.weights import probe_weights
from parity.causes.cause import Cause
from parity.diagnosis.diagnose import Diagnosis, GradientDiagnosis
from parity.causes.faults import generation, gradients, training_steps
from parity.diagnosis.search_diagnosis import diagnosis_of
from parity.diagnosis.training_diagnosis import TrainingDiagnosis, proof_run
from parity.check import cases


@dataclasses.dataclass(frozen=True)
class Proof:
    """What became of one fault in one port.

    Attributes:
        findings: parity.diagnosis.diagnose.Findings.
    """

    fault: Cause
    port: str
    findings: list

    @property
    def caught(self):
        """Whether the first divergence is where the fault shows first."""
        return bool(self.findings) and (
            (self.findings[0].case, self.findings[0].step)
            == (self.fault.case, self.fault.step))

    @property
    def named(self):
        """Whether the fault, and no other, was named."""
        return [finding.causes for finding in self.findings] == [
            (self.fault,)]

    @property
    def right(self):
        """Whether it was caught at its step and named."""
        return self.caught and self.named

    @property
    def in_words(self):
        """What a table says."""
        if self.right:
            return "named"
        if not self.findings:
            return "NOT CAUGHT"
        first = self.findings[0]
        where = "" if self.caught else f"{first.case}, {first.step}: "
        return where + "; ".join(f.cause for f in self.findings)

    def as_json(self):
        """Plain data."""
        return {
            "fault": self.fault.name, "topic": self.fault.topic,
            "port": self.port, "caught": self.caught, "named": self.named,
            "findings": [{
                "case": f.case, "step": f.step,
                "error": None if f.error is None else float(f.error),
                "causes": [cause.name for cause in f.causes]}
                for f in self.findings]}


_diagnoses: dict = {}


def diagnosis_for(fault):
    """The diagnosis of what a fault shows in; made once."""
    kind = fault.topic if fault.topic in KINDS else ""
    key = (kind, fault.preset, kind == generation.TOPIC and fault.case,
           tuple(sorted(fault.changes.items())))
    if key not in _diagnoses:
        _diagnoses[key] = KINDS.get(kind, of_model)(fault)
    return _diagnoses[key]


def of_model(fault, kind=Diagnosis):
    """The diagnosis of the config in which a fault shows."""
    config = cases.test_size(fault.preset).replace(**fault.changes)
    return kind(config, probe_weights(config))


#: Topics whose faults show in something else than a forward pass.
KINDS = {
    training_steps.TOPIC: lambda fault: TrainingDiagnosis(
        proof_run(fault.changes)),
    gradients.TOPIC: lambda fault: of_model(fault, GradientDiagnosis),
    generation.TOPIC: lambda fault: diagnosis_of("babbling words", fault.case),
}


def proof(fault, engine):
    """Put a fault into a port and look for it."""
    diagnosis = diagnosis_for(fault)
    with fault.put(engine.NAME):
        return Proof(fault, engine.NAME, diagnosis.findings(engine))


def proofs(faults, engines):
    """Yield the Proof of every fault in every port."""
    for fault in faults:
        for engine in engines.values():
            yield proof(fault, engine)
