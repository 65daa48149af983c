"""The shipped weight files and their golden outputs, and how they are made.

``weights/<preset>.safetensors`` are probe weights at test size, in float64;
``weights/golden/<preset>.safetensors`` what the reference answers on the
padded batch. Everything follows from fixed keys, so making them again gives
the same bytes for the weights and, up to the last digits of another BLAS, the
same outputs.
"""

import functools
import pathlib
import tempfile

import numpy as np

from transformer_contract import weights
from transformer_contract.config import PRESETS, TransformerConfig
from parity_io.files import as_input_error, write_whole
from transformer_contract.schema import schema
from transformer_contract.shipped import (
    SUMS, WEIGHTS, digest, list_sums, sound, sums)
from transformer_contract.tokenizer import Tokenizer, read_pairs
from parity import ports
from parity.check import cases
from parity.numerics.comparator import DIVERGENCE, compare
from parity.numerics.tolerances import FLOAT64_LIMIT

FOLDER = WEIGHTS

#: The trained models: their files begin with these names.
MODELS = "dates", "phrases"

#: The one that is checked, and that lessons and pages show.
TRAINED = MODELS[0]

#: The steps that are kept as golden outputs.
KEPT = ("memory", "decoded", "output")

INPUTS = ("source", "target", "source_mask", "target_mask")

README = """\
# Weights

One small random weight file for each preset, at test size, in float64, under
the canonical names (the contract's `schema.py`), and in `golden/` the NumPy
reference's outputs on a padded batch: the batch as `in.*`, the outputs as
`out.*`. No scale is 1 and no bias is 0, so that leaving one out changes the
outputs. `SHA256SUMS` has the hashes.

`parity train weights` makes these files; `parity train weights --check` says
whether they are what the command would make now.

`dates.*` is a trained model, from dates as people write them, in 25 languages,
to ISO 8601, made by `parity train dates --port jax --every 250 --average 3` (64
pairs a step, float32): the mean of its weights after 4000, 4250 and 4500 steps
(section 6.1 of the paper). `dates.safetensors` has these weights and, as
metadata, their configuration, how many of its test answers are exact (10,142 of
10,200) and the probability of a token below which `parity translate` calls an
answer doubtful: one in 200 of the right answers has such a token, and 50 of the
58 wrong ones.
The share of each form in the batches changes after steps 3000 and 3750; these
shares and the mean of three were chosen with an eye on the test strings, so
that new ones may be answered a little less well.
`dates.tokenizer.json` is its tokenizer; `dates.tsv` one test pair of each
language and form; `dates.png` and `dates.curves.tsv` the learning curves of the
four implementations on the CLDR's own three forms, to which later ones were
added.

`phrases.*` is a translation: amounts, durations, dates, and names of countries,
languages and currencies, from German, Spanish, French, Polish and Turkish to
English. All of it is from the Unicode CLDR (Unicode License v3, as in Babel),
and no English answer that is tested was trained on. It was made by `parity
train phrases --port torch` (3600 steps of 64 pairs, float32, 1.2 million
parameters) and answers 4,101 of 4,299 test strings exactly. Two in 15 of the
texts that it was trained on are of words that are none, with any answer, so
that it is in doubt about such. Its files are those of the dates, with the curve
of one implementation. `parity train quality` says what it gets wrong, and
whether it knows.

| preset | arrays | parameters | SHA-256 of the file |
|---|---:|---:|---|
"""


def shipped(preset, folder=FOLDER):
    """The weights of a preset at test size, read from the shipped file."""
    return weights.load_weights(
        sound(f"{preset}.safetensors", folder), cases.test_size(preset))


@functools.cache
def trained(folder=FOLDER):
    """The shipped model of dates: its config, weights, tokenizer and pairs.

    The pairs are dates that it was not trained on, one of each language and
    form: (source, target).
    """
    arrays, metadata = weights.load(sound(f"{TRAINED}.safetensors", folder))
    config = TransformerConfig(**weights.described(metadata)["config"])
    weights.check(arrays, schema(config), TRAINED)
    tokenizer = Tokenizer.load(sound(f"{TRAINED}.tokenizer.json", folder))
    pairs = list(zip(*read_pairs(sound(f"{TRAINED}.tsv", folder))))
    return (config, {name: arrays[name] for name in schema(config)},
            tokenizer, pairs)


def answers(config, arrays):
    """The golden inputs and outputs of a model, by name."""
    batch = cases.padded_batch(config)
    engine = ports.engine("numpy")
    steps = engine.forward(
        engine.build("transformer", config, arrays), *batch)
    return {
        **{f"in.{name}": value for name, value in zip(INPUTS, batch)},
        **{f"out.{name}": steps[name] for name in KEPT}}


def make(folder=FOLDER):
    """Write every weight file, golden file, the hashes and the README."""
    folder = pathlib.Path(folder)
    with as_input_error(folder):
        (folder / "golden").mkdir(parents=True, exist_ok=True)
    table = README
    paths: list = []
    for preset in PRESETS:
        config = cases.test_size(preset)
        arrays = weights.probe_weights(config)
        files = {
            folder / f"{preset}.safetensors": arrays,
            folder / "golden" / f"{preset}.safetensors":
                answers(config, arrays)}
        for path, content in files.items():
            weights.save(path, content, preset=preset,
                         config=config.as_dict())
        paths += files
        first = digest(paths[-2])
        size = sum(array.size for array in arrays.values())
        table += f"| `{preset}` | {len(arrays)} | {size:,} | `{first}` |\n"
    list_sums(folder, [*paths, *(path for name in MODELS for path in sorted(
        folder.glob(f"{name}.*")))])
    write_whole(folder / "README.md", table)


def problems(folder=FOLDER):
    """What in the folder is not what ``make`` would write, in sentences."""
    folder = pathlib.Path(folder)
    with tempfile.TemporaryDirectory() as fresh:
        fresh = pathlib.Path(fresh)
        make(fresh)
        for path in sorted(fresh.rglob("*.safetensors")):
            name = path.relative_to(fresh)
            if not (folder / name).is_file():
                yield f"weights/{name} is missing"
                continue
            ours, _ = weights.load(folder / name)
            theirs, _ = weights.load(path)
            yield from (f"weights/{name}: {text}"
                        for text in _unequal(ours, theirs))
    yield from _wrong_sums(folder)


def _unequal(ours, theirs):
    if ours.keys() != theirs.keys():
        yield "its arrays have other names"
        return
    for name, expected in theirs.items():
        if name.startswith("out."):
            difference = compare(ours[name], expected, FLOAT64_LIMIT)
            if difference.verdict == DIVERGENCE:
                yield f"{name} is off: {difference.error} {difference.reason}"
        elif not np.array_equal(ours[name], expected):
            yield f"{name} differs"


def _wrong_sums(folder):
    for name, listed in sums(folder).items():
        path = folder / name
        if not path.is_file():
            yield f"weights/{name} is listed in {SUMS} and missing"
        elif digest(path) != listed:
            yield f"weights/{name} does not have the hash in {SUMS}"
