"""Faults of the catalogue, put into the reference while it reads dates.

Some are put there when the site is made, for three dates; a server puts any
that a reader chooses, for a date of the reader's own.

Where each shows first, how far it spreads, what the gradients and the answers
become, and in which dtype its error would stay below the limit.
"""

import math
import warnings

import numpy as np

from transformer_contract.generation import GenerationConfig
from parity.causes import catalogue
from parity.check import cases
from parity.check.run import LONGEST
from parity.check.runners import Reference, own_error
from parity.numerics.tolerances import FLOAT64_LIMIT
from parity.reading.shipped_model import MAPS, Shipped
from parity.render import pictures

#: The dtypes in which an error is held against a limit.
DTYPES = ("float64", "float32", "float16", "bfloat16")

#: The faults that are put in when the site is made, by their names in the
#: catalogue, in the order in which a reader is offered them: those that one has
#: heard of first, and so their topics.
CHOSEN = (
    "no causal mask", "causal mask off by one, to the future",
    "causal mask off by one, to the past", "no padding mask",
    "scores not divided", "scores over √d_model", "softmax over queries",
    "query and key swapped", "query kernel transposed",
    "query's heads grouped by feature", "a hidden score is only 10 lower",
    "a hidden score is 1e-9", "weights masked after the softmax",
    "all biases missing", "key's bias missing", "value's bias missing",
    "softmax in bfloat16", "softmax in float32",
    "no positions", "positions begin at 1", "cosine before sine",
    "positions in halves", "positions rounded to float32",
    "positions computed in float32",
    "no residual connection", "pre-norm, not post-norm",
    "RMS norm, not layer norm", "layer norm's variance unbiased",
    "layer norm's ε is 1e-05", "layer norm's ε is 1e-12",
    "a norm over positions too", "a norm's scale is stored less 1",
    "gelu, not relu", "leaky relu, 0.01, not relu", "no activation",
    "embedding not scaled", "the row of the next id",
    "every layer has the first one's weights",
    "weights that passed through bfloat16",
)

#: Topics whose faults are in no step of the model, but in what uses it.
BESIDE = ("generation", "training", "optimiser", "loss")

#: The exponent that stands for an error of zero in a picture.
NOTHING = -18.0


def exponent(error):
    """log₁₀ of an error, to a digit; None where there is none."""
    if error is None or not math.isfinite(error):
        return None
    return round(math.log10(error), 1) if error else NOTHING


def breakable():
    """The faults that can be put into the model, CHOSEN first, by their names.
    """
    return {name: catalogue.by_name(name) for name in CHOSEN} | {
        cause.name: cause for cause in catalogue.faults()
        if cause.topic not in BESIDE}


class Breaking:
    """The shipped model on some dates, to be broken.

    Args:
        values: a shipped_model.Shipped.
        chosen: the names of the faults.
        sources: the dates.
        batch, labels: the same as token ids, and what is to be predicted; by
            default of dates whose answers are shipped.
    """

    def __init__(self, values, chosen=CHOSEN, sources=MAPS, batch=None,
                 labels=None):
        self.values, self.engine = values, values.engines["numpy"]
        self.sources, self.batch, self.labels = sources, batch, labels
        if batch is None:
            self.batch, self.labels = values.pairs_batch(sources)
        case = cases.model_case(self.batch)
        self.truths = {dtype: Reference(
            values.config, values.weights, dtype).truth(case)
            for dtype in DTYPES}
        self.steps, self.gradients, self.answers = self.run()
        self.steps = {name: self.steps[name] for name in in_order(self.steps)}
        self.faults = [self.fault(catalogue.by_name(name)) for name in chosen]

    def run(self):
        """Steps, gradients and answers of the model as it now is."""
        values, engine, batch = self.values, self.engine, self.batch
        config, tokenizer = values.config, values.tokenizer
        model = engine.build("transformer", config, values.weights)
        masks = engine.masks(batch.source, batch.target, config.pad_id)
        inputs = (batch.source, batch.target, masks["source_mask"],
                  masks["target_mask"])
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            steps = engine.forward(model, *inputs)
            _, gradients = engine.gradients(model, *inputs, self.labels)
            tokens = engine.generate(model, batch.source, GenerationConfig(
                bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id,
                max_tokens=LONGEST))["tokens"]
        return steps, {name: gradients[name] for name in values.weights
                       if name in gradients}, [
            answer(tokenizer, row[0]) for row in tokens]

    def fault(self, cause):
        """What becomes of the model with a Cause in it, as plain data."""
        with cause.put(self.engine.NAME):
            steps, gradients, answers = self.run()
        errors = errors_of(steps, self.steps)
        wrong = [name for name, error in errors.items()
                 if error is None or not error <= FLOAT64_LIMIT]
        moved = {name: error for name, error in errors_of(
            gradients, self.gradients).items()
            if error is not None and not error <= 1e-10
            and not name.endswith("key.bias")}
        worst = max(moved, key=moved.get, default="")
        return {
            "name": cause.name, "topic": cause.topic,
            "sentence": cause.sentence,
            "errors": [exponent(error) for error in errors.values()],
            "first": wrong[0] if wrong else "", "wrong": len(wrong),
            "gradients": len(moved), "worst": worst,
            "worst_error": pictures.number(moved[worst], 2) if worst else "",
            "hides": [dtype for dtype in DTYPES if self.hides(errors, dtype)],
            "answers": answers, "right": answers == self.answers,
            "names": by_what(cause)}

    def hides(self, errors, dtype):
        """Whether each error is below the limit that its step has there."""
        truth = self.truths[dtype]
        return all(error is not None and error <= truth.limit(name, dtype)
                   for name, error in errors.items())

    def page(self):
        """What the page shows."""
        steps = list(self.steps)
        return {
            "faults": self.faults, "sources": self.sources,
            "answers": self.answers,
            "count": len(steps), "weights": len(self.gradients),
            "dtypes": DTYPES, "data": {
                "steps": steps, "dtypes": DTYPES,
                "limits": {dtype: [exponent(truth.limit(name, dtype))
                                   for name in steps]
                           for dtype, truth in self.truths.items()},
                "own": {dtype: [exponent(truth.own_errors.get(name, 0.0))
                                for name in steps]
                        for dtype, truth in self.truths.items()},
                "weights": len(self.gradients),
                "faults": [{key: fault[key] for key in (
                    "name", "sentence", "errors", "first", "hides",
                    "gradients", "answers", "right", "names")}
                    for fault in self.faults]}}


def shipped():
    """What the page shows of CHOSEN, in the model and dates that are here."""
    return Breaking(Shipped()).page()


def in_order(names):
    """Names of steps as they are computed: a residual's after what it adds.

    A reference's cache has it where the residual first looks at its input.
    """
    names = list(names)

    def place(name):
        base, _, rest = name.partition("_residual.")
        behind = [i for i, other in enumerate(names)
                  if rest and other.startswith(f"{base}.")]
        return max(behind, default=names.index(name))

    return sorted(names, key=place)


def answer(tokenizer, ids):
    """The text of some ids; one that was cut since it goes on says so."""
    on = "" if tokenizer.eos_id in ids else "… and so on"
    return tokenizer.decode(ids) + on


def errors_of(arrays, truth):
    """{name: relative error}; None where it cannot be told."""
    errors = {}
    for name, expected in truth.items():
        mine = arrays.get(name)
        errors[name] = None
        if mine is not None and mine.shape == expected.shape:
            if expected.dtype.kind in "biu":
                errors[name] = float((mine != expected).mean())
            else:
                errors[name] = own_error(mine, expected)
    return errors


def by_what(cause):
    """The commands that call a cause by its name."""
    names = ["parity check"]
    if cause.explained:
        names.append("parity compare")
    if cause.hinted:
        names.append("parity.assert_parity")
    return names
