"""Where two models that are trained differ themselves: asked of one batch.

Given the same weights, each is called with the inputs of its first batch, and
both are compared as ``parity compare`` does.
"""

import contextlib
import importlib

from parity_io.errors import InputError
from parity.causes.deciding import Side, decide
from parity.comparison.compare import compare
from parity.tracing.trace import trace, tracing_of
from parity.training.case import wide
from parity.training.cause import TrainingCause
from parity.training.form import arguments, wants_model


def causes_of(case, row):
    """The TrainingCauses of what the two models compute otherwise.

    Args:
        case: a LockedPair whose outputs differ.
        row: the StepRow that differs first.

    Returns:
        TrainingCauses; [] where the models cannot be called by themselves, or
        nothing is found.
    """
    try:
        weights = case.a.steps[0].before | case.a.steps[0].buffers_before
        others = case.b.steps[0].before | case.b.steps[0].buffers_before
        sides = [_side(maker, arrays) for maker, arrays in (
            (case.one, weights),
            (case.two, case.lock.given(weights, others)))]
        if None in sides:
            return []
        traces = [trace(side.model, *side.inputs, **side.keywords)
                  for side in sides]
        comparison = decide(compare(*traces), *traces, *sides)
    except InputError:
        return []
    return [TrainingCause(
        each.cause, row.step, row.quantity,
        each.b if each.a == each.b else f"{each.a} ({each.b} in b)",
        each.in_a, each.in_b, ("model",), each.proof, each.write,
        places=(each.place_a, each.place_b))
        for each in comparison.explanations if each.identified]


def _side(maker, weights):
    """The Side of a maker's model with some weights in it; None of a run that
    is not made of a model and batches."""
    def made():
        with contextlib.ExitStack() as stack:
            if maker.exact:
                stack.enter_context(wide())
            training, _ = maker.made(1, None)
            if training is None or not training.batches or (
                    training.loss is not None and wants_model(training.loss)):
                return None
            if maker.exact:
                importlib.import_module(
                    f"parity.training.{training.framework}").widen(training)
        inputs, keywords = arguments(training.batches[0])
        if training.loss is not None or training.framework == "keras":
            inputs = inputs[:-1] or inputs
        put = tracing_of(training.model).setters(training.model)
        for path, array in weights.items():
            put[path](array)
        return training.model, inputs, keywords
    first = made()
    return None if first is None else Side(*first, made)
