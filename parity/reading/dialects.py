"""The pages of dialects: what each system does unlike the paper.

A small model of each dialect reads a real pair of sentences in all four. Its
page has the fields in which it is not the paper's, how far each of them alone
moves the output, and the steps that the paper's model does not have.
"""

import contextlib
import functools
import warnings

import numpy as np

from transformer_contract.batch import Batch
from transformer_contract.dialects.table import SYSTEMS
from parity_io.errors import InputError
from transformer_contract.sinusoids import TABLES
from transformer_contract.tokenizer import Tokenizer
from transformer_contract.weights import probe_weights
from parity import ports
from parity.numerics.tolerances import FLOAT64_LIMIT
from parity.numerics.words import number
from parity.runs.dialect_distance import (
    SIZES, at_one_size, distance)
from parity.reading import formulas
from parity.reading.model_run import ModelRun, join
from parity.render.dialects import PAPER, fields

#: The sizes of the models on these pages.
SMALL = SIZES | {"d_model": 64, "n_heads": 4, "d_ff": 128, "d_head": 16,
                 "n_kv_heads": 4, "n_encoder_layers": 2,
                 "n_decoder_layers": 2}

PAIR = "The sea is calm tonight.", "La mer est calme ce soir."


def address(name):
    """The page of a dialect."""
    return f"dialect-{name.replace('_', '-')}.html"


def pages(site):
    """Yield (address, title, template, what it shows) of each dialect."""
    names = list(SYSTEMS)
    for place, (name, one) in enumerate(SYSTEMS.items()):
        yield address(name), name, "dialect.html", {
            **of_dialect(site, one), "pair": PAIR, "sizes": SMALL,
            "before": beside(names[:place][-1:]),
            "after": beside(names[place + 1:][:1])}


def of_marian(site):
    """What Hugging Face's Marian does that Marian does not, in numbers."""
    theirs, ours = (configured(SYSTEMS[name])
                    for name in ("marian", "hf_marian"))
    known = probe_weights(ours)
    truth = output(ours, known)
    words = {"norm_eps": "ε of the norms",
             "position_divisor": "pairs of positions are divided by",
             "begin": "the decoder begins with",
             "position_rounding": "the table of positions is rounded to"}
    changes = {field: getattr(theirs, field) for field in words
               if getattr(theirs, field) != getattr(ours, field)}
    return {
        "rows": [(words[field], here, getattr(ours, field), number(
            distance(truth, output(ours.replace(**{field: here}), known))))
            for field, here in changes.items()],
        "unrounded": number(distance(truth, output(
            ours.replace(position_rounding="none"), known))),
        "together": number(distance(truth, output(
            ours.replace(**changes), known))),
        "tables": [(length, number(farthest(length)))
                   for length in (5, 25, 100, 512)],
        "limit": FLOAT64_LIMIT}


def farthest(length, width=512):
    """The largest difference of the two tables of positions."""
    halves = TABLES["halves"]
    return float(np.abs(halves(length, width, "half")
                        - halves(length, width, "half_less_one")).max())


def beside(names):
    """(address, name) of the dialect in a list of one or none, or None."""
    return next(((address(name), name) for name in names), None)


def of_dialect(site, dialect):
    """What the page of a dialect shows."""
    config = configured(dialect)
    run = site.call(ran, dialect.name, site.values.ports)
    return {"dialect": dialect, "config": config,
            "svg": site.architecture.dialect(dialect),
            "fields": site.call(parted, config),
            "worst": worst(run),
            "own": list(own(site, run))}


def worst(run):
    """Column -> (the Difference of the largest error, its step's name)."""
    found = {}
    for column, differences in run.differences.items():
        name = max(differences,
                   key=lambda name: differences[name].error or 0.0)
        found[column] = differences[name], name
    return found


def own(site, run):
    """Yield the steps of a run that the paper's model does not have."""
    known = site.call(ran, "", site.values.ports).paths
    for file, rows in site.rows.items():
        for row in rows:
            if row.kind != "step" or row.owner in known:
                continue
            seen = [one for path in run.paths.get(row.owner, ())
                    if (one := run.seen(join(path, row.name)))]
            if seen:
                yield {"row": row, "address": f"{file}.html#{row.id}",
                       "formula": formulas.formula(row.step),
                       "places": len(seen), "errors": worst_of(seen)}


def worst_of(seen):
    """Column -> the Difference with the largest error of some SeenArrays."""
    return {column: max(
        (one.differences[column] for one in seen),
        key=lambda difference: difference.error or 0.0)
        for column in seen[0].differences}


def configured(dialect):
    """A dialect's configuration at SMALL, with the committed tokenizer."""
    return at_one_size(dialect, Tokenizer.load(), SMALL)


def papers():
    """The paper's configuration at these sizes."""
    vocab = Tokenizer.load().vocab_size
    return PAPER.replace(**SMALL | {
        "source_vocab": vocab, "target_vocab": vocab})


@functools.cache
def ran(name, port_names):
    """The ModelRun of a dialect, or of the paper's model where it is ""."""
    engines = {column: ports.engine(column)
               for column in ("numpy", *port_names)}
    for engine in engines.values():
        engine.set_precision()
    config = configured(SYSTEMS[name]) if name else papers()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ModelRun(engines, config, probe_weights(config), batch())


@functools.cache
def batch():
    """The Batch of PAIR."""
    source, target = PAIR
    return Batch.of_text([source], [target], Tokenizer.load())


def output(config, known):
    """The reference's output, with known weights where a shape is theirs."""
    engine = ports.engine("numpy")
    model = engine.build("transformer", config, probe_weights(
        config, known=known))
    steps = engine.forward(model, *batch())
    return steps["output" if "output" in steps else "memory"]


def parted(config):
    """How far a port is off that is the paper's in one field alone.

    Returns:
        (field, the paper's, here, how far, with which other field) of each
        field that is not the paper's. A field that no model can have without
        another goes with that one; how far is "" where none helps.
    """
    paper, here = PAPER.as_dict(), config.as_dict()
    known = probe_weights(config)
    truth = output(config, known)
    names = [field for field in fields(config) if field != "stacks"]
    rows = []
    for field in names:
        far, others = "", ""
        for others in ("", *(name for name in names if name != field)):
            back = [name for name in (field, others) if name]
            with contextlib.suppress(InputError):
                far = number(distance(truth, output(config.replace(
                    **{name: paper[name] for name in back}), known)))
                break
        rows.append((field, paper[field], here[field], far,
                     others if far else ""))
    return rows
