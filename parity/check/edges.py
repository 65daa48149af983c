"""What engines are asked at the end of blocks and bytes, and a second time.

As in parity.check.extremes, which lists them: each function yields (what is
asked, an array) of an engine, and the reference is right.
"""

import numpy as np

from contract.batch import Batch
from contract.config import TransformerConfig
from contract.generation import CHOICES, GenerationConfig
from contract.training import TrainingConfig
from contract.weights import probe_weights
from parity.check import cases

#: Where a block of keys that a port might keep ends, and one more.
LENGTHS = 64, 65, 128, 129

#: After how many steps a run is resumed: a number all of whose bits are 1.
RESUMED = 7

#: More words than 8 bits count.
WORDS = 300

TRAINING = TrainingConfig(warmup_steps=3, clip_norm=0.5, seed=11)

SMALL = TransformerConfig(
    source_vocab=WORDS, target_vocab=WORDS, d_model=6, n_heads=2, d_ff=5,
    n_encoder_layers=1, n_decoder_layers=1, max_length=130, pad_id=3,
    dropout=0.2, attention_bias="none")  # a key's has no gradient but rounding


def model_of(engine):
    """A small model of many words, whose answers depend on their sources."""
    weights = probe_weights(SMALL, 3)
    return engine.build("transformer", SMALL, {
        name: array if name.endswith(("bias", "scale")) else 2 * array
        for name, array in weights.items()})


def batch_of(what, *shape):
    """A Batch with sources and targets of one shape, and some padding."""
    source, target = (cases.ids(f"{name} {what}", *shape, WORDS)
                      for name in ("source", "target"))
    source[0, -2:] = target[0, -1:] = SMALL.pad_id
    return Batch.of_ids(source, target, SMALL.pad_id)


def blocks(engine):
    """As many tokens as a block has, and one more."""
    model = model_of(engine)
    for length in LENGTHS:
        yield f"output of {length}", engine.predict(
            model, *batch_of("block", 2, length))
    for name, array in engine.generate(
            model, batch_of("search", 2, 5).source, GenerationConfig(
                eos_id=0, max_tokens=LENGTHS[0])).items():
        yield f"greedy, {name}", array


def words(engine):
    """Words beyond 255 that a search finds, in any way, and in one token."""
    model, source = model_of(engine), batch_of("words", 2, 5).source
    for method in CHOICES["method"]:
        for count in (1, 3):
            settings = GenerationConfig(
                method=method, eos_id=0, max_tokens=count,
                suppress_tokens=tuple(range(4, 256)))
            for name, array in engine.generate(
                    model, source, settings).items():
                yield f"{method}, {count}, {name}", array


def twice(engine):
    """Gradients and searches of one model, asked a second and a third time."""
    model = model_of(engine)
    for count, what in enumerate(("one", "other", "one")):
        batch = batch_of(what, 2, 5)
        loss, gradients = engine.gradients(model, *batch, batch.target)
        yield f"loss, {count}", loss
        for name in engine.export(model):
            yield f"gradient {name}, {count}", gradients[name]
        for name, array in engine.generate(
                model, batch.source, GenerationConfig(max_tokens=3)).items():
            yield f"{name}, {count}", array


def steps(engine):
    """Steps of training on words beyond 255, longer than a block."""
    model = model_of(engine)
    yield from trained(engine, model, engine.trainer(model, TRAINING))


def resumes(engine):
    """Steps of a run that is resumed after an odd step, with both moments."""
    model = model_of(engine)
    trainer = engine.trainer(model, TRAINING)
    engine.resume(trainer, RESUMED, {
        f"{kind}.{name}": np.abs(cases.values(
            f"{kind} {name}", *array.shape, scale=0.01))
        for kind in "mv" for name, array in engine.export(model).items()})
    yield from trained(engine, model, trainer)
    yield from engine.moments(trainer).items()


def trained(engine, model, trainer):
    """What two steps tell, and the weights after them."""
    for count in range(2):
        batch = batch_of(f"step {count}", 2, SMALL.max_length)
        for name, array in engine.train_step(
                trainer, batch.source[None], batch.target[None]).items():
            yield f"{name}, {count}", array
    yield from engine.export(model).items()


QUESTIONS = blocks, words, twice, steps, resumes
