"""Why a port diverges, from a row of the check's report."""

from transformer_contract.config import PRESETS
from parity.diagnosis.diagnose import Diagnosis, GradientDiagnosis
from parity.diagnosis.search_diagnosis import diagnosis_of
from parity.diagnosis.training_diagnosis import TrainingDiagnosis, run_of_row
from parity.check import cases, golden, wide


def diagnosis_of_row(row):
    """What looks for the causes of a Row of parity.check.run, or None.

    There is none for what is neither a component, nor a step of a model, of
    its gradients, of a search or of training, in float64.
    """
    if row.dtype != "float64":
        return None
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
