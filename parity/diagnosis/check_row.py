"""Why a port diverges, from a row of the check's report."""

from transformer_contract.config import PRESETS
from parity.diagnosis.diagnose import Diagnosis, GradientDiagnosis
from parity.diagnosis.search_diagnosis import SearchDiagnosis, diagnosis_of
from parity.diagnosis.training_diagnosis import TrainingDiagnosis, run_of_row
from parity.check import cases, drawn, golden, wide
from parity.check.search_runs import SearchedModel


def diagnosis_of_row(row):
    """What looks for the causes of a Row of parity.check.run, or None.

    There is none for what is neither a component, nor a step of a model, of
    its gradients, of a search or of training, in float64.
    """
    if row.dtype != "float64":
        return None
    if model := drawn.of_name(row.preset):
        return diagnosis_of_drawn(model, row.case)
    if run := run_of_row(row):
        return TrainingDiagnosis(run)
    if row.name.startswith(("tokens,", "scores,")):
        return diagnosis_of(row.preset, row.case.partition(": ")[0])
    config = weights = batch = None
    if row.preset in PRESETS:
        config, weights = cases.test_size(row.preset), golden.shipped(
            row.preset)
    for model in wide.models():
        if model.name == row.preset:
            config, weights, batch = model.config, model.weights(), model.main
    if not config:
        return None
    if row.case == "gradients":
        return GradientDiagnosis(config, weights, batch)
    diagnosis = Diagnosis(config, weights, batch=batch)
    return diagnosis if row.case in [
        case.name for case in diagnosis.cases] else None


class DrawnDiagnosis(Diagnosis):
    """Looks for the causes of a DrawnModel's steps that diverge.

    Its components come before the whole, so that several are told apart.
    """

    def __init__(self, model):
        self.drawn = model
        super().__init__(model.config, model.weights, batch=model.batch)

    def _cases(self):
        *first, whole = self.drawn.cases("readable")
        yield from first
        known = *wide.ONCE, *(case.name for case in first)
        for case in cases.component_cases(self.config, self.batch):
            if case.name not in known and case.kind != "optimizer":
                yield case
        yield whole


class DrawnGradientDiagnosis(GradientDiagnosis):
    """Looks for the causes of a DrawnModel's gradients that diverge."""

    def __init__(self, model):
        self.drawn = model
        super().__init__(model.config, model.weights, batch=model.batch)

    def _cases(self):
        yield self.drawn.gradients


def diagnosis_of_drawn(model, case):
    """What looks for the causes in a case of a DrawnModel, by its name."""
    if case == "gradients":
        return DrawnGradientDiagnosis(model)
    if model.run and case == model.run.name:
        return TrainingDiagnosis(model.run)
    if case in [each.name for each in model.cases("readable")]:
        return DrawnDiagnosis(model)
    return SearchDiagnosis(SearchedModel(
        model.name, model.config, model.weights, model.batch.source,
        (model.search,)), model.search)
