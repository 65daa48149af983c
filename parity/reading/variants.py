"""The page of variants: each choice of a config, seen in numbers."""

import importlib

import numpy as np

from transformer_contract.config import PRESETS
from transformer_contract.sinusoids import TABLES
from parity.numerics.comparator import compare
from parity.numerics.tolerances import FLOAT64_LIMIT
from parity.reading.model_run import ModelRun
from parity.reading.shipped_model import reread
from parity.render import pictures


def softmax(x):
    """exp(x) over its sum, along the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def of_variants(site):
    """Each choice of a config, and where it is seen in numbers."""
    values = site.values
    number = pictures.number
    base, other = values.dates, values.others[0]
    steps, others = base.steps["numpy"], other.steps["numpy"]
    stream = [name for name in steps if name.endswith(".output")
              and name.count(".") == 3 and "layers" in name]
    fields = ("residual", "norm", "norm_eps", "final_norm", "positions",
              "activation", "gated", "feed_forward_bias", "output", "tied")
    return {
        "presets": {name: [getattr(config, field) for field in fields]
                    for name, config in PRESETS.items()},
        "fields": fields,
        "residual": [(name, number(steps[name].std()),
                      number(others[name].std()),
                      number(float(np.abs(others[name]).max())))
                     for name in stream],
        "norms": norms(values), "final": final_norms(others),
        "positions": positions(values), "outputs": outputs(values),
        "tied": tied(values)}


def norms(values):
    """One row of the example, normed in each way."""
    engine = values.engines["numpy"]
    parts = importlib.import_module(f"{engine.__package__}.parts")
    x = values.dates.steps["numpy"][
        "encoder.layers.0.self_attention_residual.summed"][:, :1]
    outputs = {}
    for name in parts.NORMS:
        norm = parts.part(parts.NORMS, name)(x.shape[-1], 1e-6)
        outputs[name] = norm.forward(x)[0][0, 0]
    del outputs["rms_float32"]  # differs in digits that are not shown
    ratio = outputs["std"] / outputs["layer"]
    width = x.shape[-1]
    return {
        "rows": [(name, pictures.number(float(y.std())), pictures.number(
            float(y.std(ddof=1))), pictures.number(
                float(np.sqrt(np.mean(y * y)))),
            [pictures.number(v) for v in y[:4]])
            for name, y in outputs.items()],
        "ratio": pictures.number(float(ratio.mean()), 8),
        "root": pictures.number(((width - 1) / width)**0.5, 8),
        "width": width}


def final_norms(steps):
    """What a final norm does at the end of each pre-norm stack."""
    last = {}
    for name, value in steps.items():
        if name.endswith(".output") and name.count(".") == 3:
            last[name.split(".")[0]] = name, value
    return [(stack, name, pictures.number(value.std()),
             pictures.number(steps[f"{stack}.output"].std()))
            for stack, (name, value) in last.items()]


def positions(values):
    """The second row of each table."""
    width = 8
    tables = {name: make(3, width) for name, make in TABLES.items()}
    order = np.concatenate([np.arange(0, width, 2), np.arange(1, width, 2)])
    same = np.array_equal(tables["interleaved"][:, order], tables["halves"])
    return {"rows": {name: [pictures.number(x) for x in table[1]]
                     for name, table in tables.items()},
            "width": width,
            "same": "equal, bit for bit" if same else "different"}


def outputs(values):
    """A row of logits, and of their logarithmic probabilities."""
    logits = values.dates.steps["numpy"]["output"][0, 0]
    log_probs = np.log(softmax(logits))
    number = pictures.number
    return [(name, number(float(y.max())), number(float(np.exp(y).sum())),
             int(y.argmax()))
            for name, y in (("logits", logits), ("log_probs", log_probs))]


def tied(values):
    """One table's gradient, and the three that it is the sum of."""
    config = values.config.replace(tied="none")
    apart = ModelRun({"numpy": values.engines["numpy"]}, config,
                     reread(values.weights, config), values.dates.batch,
                     values.dates.labels)
    g = apart.gradients["numpy"]
    parts = {name: g[name] for name in (
        "source_embedding.table", "target_embedding.table")}
    parts["projection.kernel, transposed"] = g["projection.kernel"].T
    whole = values.dates.gradients["numpy"]["source_embedding.table"]
    difference = compare(sum(parts.values()), whole, FLOAT64_LIMIT)
    count = {name: sum(array.size for array in run.weights.values())
             for name, run in (("tied", values.dates), ("apart", apart))}
    return {"parts": [(name, pictures.number(float(np.linalg.norm(part))))
                      for name, part in parts.items()],
            "whole": pictures.number(float(np.linalg.norm(whole))),
            "error": pictures.error(difference),
            "count": {name: f"{n:,}".replace(",", " ")
                      for name, n in count.items()}}
