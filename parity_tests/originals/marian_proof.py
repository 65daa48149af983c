"""Whether the dialect marian is what Marian's own programs compute.

They compute in float32, and print five decimals of a token's log p, six of a
sum's. Each port's float64 is the truth; Marian may be as far from it as the
limits of float32 allow, which follow the reference's own float32 on the same
numbers, and by half a unit of the last digit more. Gradients are told by a
step of SGD, after which Marian writes its weights in full.
"""

import functools
import tempfile
import typing

import numpy as np

from transformer_contract.batch import Batch
from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights
from parity.check.margins import margins
from parity.numerics import zero_gradients
from parity.numerics.comparator import MATCH, ZERO, compare, relative_error
from parity.numerics.tolerances import (
    gradient_limit, lockstep_limit, score_limit)
from parity_tests.originals import random_models
from parity_tests.originals.marian import DIGITS, END, MARIAN, Marian
from parity_tests.originals.proof import ProofRow
from parity_tests.originals.searching import MOST, SearchRow, whole

#: What is compared, in the order of the table.
KINDS = ("outputs, float32", "gradients, float32", "training step, float32")

#: A power of two so high that a weight after a step of SGD is the gradient.
RATE = 2.0**20

#: ε is large, as in the other proofs.
TRAINING = TrainingConfig(
    schedule="constant", learning_rate=8.0, eps=1.0, beta2=0.98)

#: What divides the vectors inside a model, so that their variance is near ε.
SMALL = 16

#: The norm behind each sub-layer. Where it comes first, Marian's decoder takes
#: keys and values of what is written without their norm, and so gives a target
#: another score than its scorer does.
POST = {"transformer-preprocess": "", "transformer-postprocess": "dan",
        "transformer-postprocess-top": ""}

#: The exponents of the length, which beams take in turn, and the widest beam.
ALPHAS, WIDEST = (0.0, 0.6, 1.0), 6

#: What is added to the end's score, so that answers end before the last place.
LIKELY = 2.0


def drawn(seed, **words):
    """A small model: its configuration, and weights that float32 holds.

    The vectors inside a post-norm model are small, and show its ε.

    Args:
        words: of Marian's configuration, that are not drawn.
    """
    config = MARIAN.config(random_models.described(MARIAN, seed, **words))
    last = f"decoder.layers.{config.n_decoder_layers - 1}.feed_forward_"
    weights = {}
    for name, array in probe_weights(config, seed).items():
        inside = ".layers." in name and not name.startswith(last)
        if inside and name.endswith((".norm.scale", ".bias")):
            array = array / SMALL
        weights[name] = array.astype(np.float32).astype(np.float64)
    return config, weights


def level(weights):
    """Weights in which all numbers of a norm's scale are its first.

    Marian's gradient of a norm multiplies by the scale last, behind the
    derivative of what is normalised: it is one only where the scale is one.
    """
    return {name: np.full_like(array, array[0])
            if name.endswith(".norm.scale") else array
            for name, array in weights.items()}


def texts(config, seed, rows=4, longest=0):
    """Ids of words, without an end: lists of several lengths, or one.

    Args:
        longest: the length of all; 0 for lengths of 1 to what fits.
    """
    draw = np.random.default_rng([19, seed])
    words = np.delete(np.arange(config.target_vocab), [END, config.pad_id])
    return [draw.choice(words, longest or draw.integers(
        1, config.max_length - 1)).tolist() for _ in range(rows)]


def padded(rows, config):
    """Lists of ids as an array, int64 [B L]."""
    most = max(map(len, rows))
    return np.array([row + [config.pad_id] * (most - len(row))
                     for row in rows])


class SentencePairs:
    """Sources and targets, as Marian reads them and as our models do."""

    def __init__(self, config, seed):
        self.sources, self.targets = (
            texts(config, 2 * seed + i) for i in range(2))
        self.labels = padded([row + [END] for row in self.targets], config)
        self.source = padded([row + [END] for row in self.sources], config)
        self.target = padded([[END] + row for row in self.targets], config)
        self.known = self.labels != config.pad_id
        batch = Batch.of_ids(self.source, self.target, config.pad_id)
        self.inputs = tuple(batch)


def prove(seed, engines, even=level, **changes):
    """Rows of a proof of the model that a seed draws, in every engine.

    Args:
        seed: from which sizes, weights and texts follow.
        engines: port -> engine, the reference's as "numpy".
        even: what is done to the weights before gradients are asked for.
        changes: fields of our configuration, by which it is another's.
    """
    config, weights = drawn(seed)
    pairs, trained = SentencePairs(config, seed), even(weights)
    outputs, gradients, step = KINDS
    with tempfile.TemporaryDirectory() as folder:
        one = Marian(f"{folder}/scored", config, weights)
        sums, words = one.score(pairs.sources, pairs.targets)
        one = Marian(f"{folder}/trained", config, trained)
        _, after = one.train(pairs.sources, pairs.targets, "sgd",
                             "--learn-rate", str(RATE))
        loss, stepped = one.train(
            pairs.sources, pairs.targets, "adam", "--learn-rate", "8.0",
            "--optimizer-params", "0.9", "0.98", "1.0")
    theirs = {
        outputs: {"words": np.concatenate(words), "sums": np.array(sums)},
        gradients: {"loss": np.array([loss]), **{
            name: (array - after[name]) / RATE
            for name, array in trained.items()}},
        step: exact(stepped)}
    config = config.replace(**changes)
    own = answers(engines["numpy"], config, weights, trained, pairs,
                  "float32")
    for port, engine in engines.items():
        truth = answers(engine, config, weights, trained, pairs)
        for kind, arrays in theirs.items():
            for name, array in arrays.items():
                yield ProofRow("marian", seed, port, kind, name, *judged(
                    kind, name, array, truth[kind], own[kind][name]))


#: The limit of a kind's arrays: of a dtype and NumPy's own error in it.
LIMITS: dict[str, typing.Callable] = dict(zip(KINDS, (
    score_limit, functools.partial(gradient_limit, of_one=True),
    lockstep_limit)))


def judged(kind, name, array, truths, own):
    """The error of an array of Marian's, and whether it is within the limit.

    Args:
        truths: of the kind, {name: float64 array}.
        own: the reference's array in float32.
    """
    truth, scale = truths[name], None
    if kind == KINDS[1] and zero_gradients.is_zero(name):
        scale = float(np.abs(truths[zero_gradients.beside(name)]).max())
    error = compare(own, truth, np.inf, zero_scale=scale).error
    room = DIGITS.get(name, 0.0) * truth.size**0.5 / np.linalg.norm(truth)
    difference = compare(array, truth, LIMITS[kind]("float32", error) + room,
                         zero_scale=scale)
    return difference.error, difference.verdict in (MATCH, ZERO)


def answers(engine, config, weights, trained, pairs, dtype="float64"):
    """What a port answers to what Marian is asked.

    Returns:
        {one of KINDS: {name: float64 array}}.
    """
    outputs, gradients, step = KINDS
    model = engine.build("transformer", config, weights, dtype)
    scores = engine.forward(model, *pairs.inputs)["output"]
    words = log_probs(np.asarray(scores, np.float64), pairs.labels)
    model = engine.build("transformer", config, trained, dtype)
    loss, grads = engine.gradients(model, *pairs.inputs, pairs.labels)
    model = engine.build("transformer", config, trained, dtype)
    trainer = engine.trainer(model, TRAINING)
    engine.train_step(trainer, pairs.source[None], np.concatenate(
        [pairs.target[:, :1], pairs.labels], axis=1)[None])
    return {outputs: {"words": words[pairs.known],
                      "sums": np.sum(words * pairs.known, axis=1)},
            gradients: {"loss": np.array([loss], np.float64), **exact(grads)},
            step: exact(engine.export(trainer.model))}


def exact(arrays):
    """Arrays in float64."""
    return {name: np.asarray(array, np.float64)
            for name, array in arrays.items()}


def log_probs(scores, labels):
    """log p [B T] of labels, by scores [B T V]."""
    scores = scores - scores.max(axis=-1, keepdims=True)
    scores = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    return np.take_along_axis(scores, labels[..., None], axis=-1)[..., 0]


# Searches

def every(seed):
    """(beam, the exponent of the length), at another seed another one."""
    return tuple((beam, ALPHAS[(beam + seed) % len(ALPHAS)])
                 for beam in range(1, WIDEST + 1))


def search(seed, engines, rows=10, asked=None, words=POST, **changes):
    """A SearchRow for each search of the model that a seed draws.

    Args:
        seed, engines: as in prove; each second seed's sources are one batch.
        rows: how many inputs.
        asked: pairs of ``every``, which are asked by default.
        words: as in drawn.
        changes: fields of our search, by which it is another's.
    """
    config, weights = drawn(seed, **{"output-omit-bias": False, **words})
    bias = weights["projection.bias"]
    bias[END] = np.float32(bias[END] + LIKELY)
    models = {port: engine.build("transformer", config, weights)
              for port, engine in engines.items()}
    reference = engines["numpy"], models["numpy"]
    sources = texts(config, seed, rows, 2 + seed)
    source = np.array([row + [END] for row in sources])
    for beam, alpha in asked or every(seed):
        settings = GenerationConfig(**{
            **MARIAN.search, "beam": beam, "alpha": alpha, "bos_id": END,
            "eos_id": END, "max_tokens": MOST, **changes})
        with tempfile.TemporaryDirectory() as folder:
            found = Marian(f"{folder}/model", config, weights).search(
                sources, beam, alpha, MOST, 1 + (rows - 1) * (seed % 2))
        heard = margins(*reference, source, settings)
        least = score_limit("float32", 0.0) * np.abs(
            heard["scores"][np.isfinite(heard["scores"])]).max() * MOST**alpha
        clear = heard["margins"] > least
        theirs, scores = arrays(found, beam)
        for port, engine in engines.items():
            ours = engine.generate(models[port], source, settings)
            tokens = np.where(np.isfinite(ours["scores"])[..., None],
                              whole(ours["tokens"], settings), -1)
            same = np.isfinite(scores) & np.isfinite(ours["scores"])
            same &= clear[:, None]
            yield SearchRow(
                "marian", seed, port, f"beam {beam}, {alpha}", rows,
                int(np.sum(tokens[:, 0, -1] < 0)), int(np.sum(~clear)),
                int(np.sum(np.any(tokens != theirs, axis=(1, 2))[clear])),
                relative_error(scores[same], ours["scores"][same])[0])


def arrays(answers, beam):
    """Marian's hypotheses as tokens [B W N], -1 behind, and scores [B W]."""
    tokens = np.full((len(answers), beam, MOST), -1)
    scores = np.full((len(answers), beam), -np.inf)
    for i, hypotheses in enumerate(answers):
        for j, (ids, score) in enumerate(hypotheses):
            tokens[i, j, :len(ids)], scores[i, j] = ids, score
    return tokens, scores
