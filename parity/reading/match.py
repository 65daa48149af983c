"""The page on what "match" means: the limits, and this run under them."""

import numpy as np

from parity.check.runners import Oracle, compare_steps
from parity.numerics.comparator import DIVERGENCE, MATCH, ROW_SLACK
from parity.numerics.dtypes import EPS
from parity.numerics.tolerances import FLOAT64_LIMIT, limit
from parity.render import pictures


def of_match(site):
    """The limits, and this run under them."""
    values = site.values
    return {
        "slack": ROW_SLACK, "eps": {
            name: pictures.number(value, 3) for name, value in EPS.items()},
        "limit": pictures.number(FLOAT64_LIMIT),
        "rule": {dtype: rule(dtype) for dtype in ("float32", "bfloat16")},
        "worst": worst_of(values), "spread": spread_of(values),
        "fault": fault(values)}


def rule(dtype):
    """A dtype's limit in numbers: times NumPy's own error, plus, at most."""
    eps = EPS[dtype]
    more = limit(dtype, 0.0, inner=True) / eps
    return {"times": round(limit(dtype, eps, inner=True) / eps - more),
            "more": round(more), "most": round(limit(dtype, 1.0) / eps)}


def worst_of(values):
    """Column -> for steps and gradients: count, worst, its name and error."""
    columns = {}
    for column in values.ports:
        kinds = {}
        for kind in ("steps", "gradients"):
            entries = [(one.error, name, one) for run in values.runs
                       for name, one in run.differences[column].items()
                       if name.startswith("grad ") == (kind == "gradients")
                       and one.error is not None
                       and one.verdict in (MATCH, DIVERGENCE)]
            error, name, one = max(entries, key=lambda entry: entry[0])
            kinds[kind] = {
                "count": len(entries), "name": name.removeprefix("grad "),
                "error": pictures.error(one),
                "limit": pictures.number(one.limit),
                "equal": sum(entry[0] == 0 for entry in entries),
                "bad": sum(entry[2].verdict == DIVERGENCE
                           for entry in entries)}
        columns[column] = kinds
    return columns


#: The bins of the table of errors, by their upper ends.
BINS = (0.0, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)


def spread_of(values):
    """How many steps' errors fall between which powers of ten."""
    counts_of = {}
    for column in values.ports:
        errors = np.array([
            difference.error for run in values.runs
            for name, difference in run.differences[column].items()
            if not name.startswith("grad ") and difference.error is not None])
        counts, low = [], -1.0
        for high in BINS:
            counts.append(int(((errors > low) & (errors <= high)).sum()))
            low = high
        counts_of[column] = counts
    last = max((i for counts in counts_of.values()
                for i, count in enumerate(counts) if count), default=0)
    return {"bins": ["0"] + [pictures.number(high, 1)
                             for high in BINS[1:last + 1]],
            "rows": {column: counts[:last + 1]
                     for column, counts in counts_of.items()}}


def fault(values):
    """Another epsilon in the reference, and the steps that tell of it."""
    engine, config = values.engines["numpy"], values.config
    eps = 1e-5
    model = engine.build(
        "transformer", config.replace(norm_eps=eps), values.weights)
    differences = compare_steps(
        engine.forward(model, *values.dates.batch),
        Oracle(values.dates.steps["numpy"], {}), "float64")
    bad = [(name, pictures.error(one)) for name, one in differences.items()
           if one.verdict == DIVERGENCE]
    return {"eps": pictures.number(eps),
            "right": pictures.number(config.norm_eps),
            "before": list(differences).index(bad[0][0]), "count": len(bad),
            "of": len(differences), "first": bad[:4],
            "last": bad[-1], "limit": pictures.number(FLOAT64_LIMIT)}
