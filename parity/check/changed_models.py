"""What fast forms are asked of models in which a user changed something.

As in parity.check.extremes, which lists them: each function yields (what is
asked, an array) of an engine, and the reference is right.
"""

import contextlib
import copy
import importlib
import warnings

import numpy as np

from transformer_contract.batch import Batch
from transformer_contract.fast_forms import NotAsBuilt
from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights
from parity.check import cases
from parity.check.branches import CONFIG, lowered

#: Strips of few outputs, of which a small weight has some, on any processor.
STRIPS = {"takes_small": lambda: True, "STRIPS": (5, 3), "SMALL": 400}

#: Parts of a model that a user may replace.
PARTS = (*(f"decoder.layers.0.{name}" for name in (
    "self_attention.value", "self_attention.query", "self_attention.key",
    "self_attention.output", "cross_attention.query", "feed_forward.inner",
    "feed_forward", "self_attention", "cross_attention")),
    "projection", "decoder.norm", "encoder.layers.0", "decoder.layers.0",
    "decoder")

#: What else models are that all are as they were built.
BUILT = ({}, {"tied": "none", "gated": True}, {"positions": "learned"},
         {"positions": "relative"}, {"positions": "rotary_halves"},
         {"norm": "rms", "residual": "pre", "final_norm": True},
         {"output_transform": True, "output_bias": True})


def parts_of_others(engine):
    """A model with one part that doubles what it gives: each is called."""
    for path in PARTS:
        model = engine.build("transformer", CONFIG, probe_weights(CONFIG, 3))
        doubled(at(engine, model, path))
        yield from answers(engine, model, path)


def ways_of_others(engine):
    """A model with a method of its own, a hook, or another number."""
    for change in (with_methods, hooked, hooked_before, with_a_function,
                   with_an_output, with_a_divisor, with_a_map_twice):
        model = engine.build("transformer", CONFIG, probe_weights(CONFIG, 3))
        change(engine, model)
        yield from answers(engine, model, change.__name__)


def ways_of_a_rotary_model(engine):
    """A model with rotary positions whose weights of attention double."""
    config = CONFIG.replace(positions="rotary_halves")
    source = cases.ids("source", 2, 6, CONFIG.source_vocab)
    for what in "answers", "steps":
        model = engine.build("transformer", config, probe_weights(config, 3))
        doubled(model.decoder.layers[0].self_attention.weights_dropout)
        if what == "answers":
            yield from answers(engine, model, what)
        else:
            with unwarned():
                yield "output", engine.forward(
                    model, *Batch.of_ids(source, source))["output"]


def changes_after_answers(engine):
    """A model that has answered, and is given another table or map."""
    for change in with_a_table, with_a_map_twice, with_a_start:
        model = engine.build("transformer", CONFIG, probe_weights(CONFIG, 3))
        for when in "before", "after":
            yield from answers(engine, model, f"{when} {change.__name__}")
            if when == "before":
                change(engine, model)


def parts_in_turn(engine):
    """A model that is given other parts between its searches."""
    yield "as built", np.array([getattr(engine, "as_built", bool)(engine.build(
        "transformer", CONFIG.replace(**changes), probe_weights(
            CONFIG.replace(**changes)))) for changes in BUILT])
    model, like, other = (engine.build(
        "transformer", CONFIG.replace(activation=word), probe_weights(
            CONFIG, seed)) for word, seed in (
                ("relu", 3), ("relu", 4), ("gelu", 5)))
    first = model.decoder
    for what, decoder in (("first", first), ("like it", like.decoder),
                          ("other", other.decoder), ("first again", first)):
        model.decoder = decoder
        yield from answers(engine, model, what)
    with_an_output(engine, model)
    yield from answers(engine, model, "of another output")
    doubled(model.decoder.layers[0].feed_forward)
    yield from answers(engine, model, "of another kind")


def training_of_others(engine):
    """Training of a model with a part of a kind of a user's own."""
    source, target = (cases.ids(name, 2, 6, CONFIG.source_vocab)
                      for name in ("source", "target"))
    for what, path in ("method", ""), ("part", "decoder.layers.0.feed_forward"):
        model = engine.build("transformer", CONFIG, probe_weights(CONFIG, 3))
        doubled(at(engine, model, path), *["project"] * (not path))
        with unwarned():
            yield f"{what}, loss alone", engine.gradients(
                model, *Batch.of_ids(source, target[:, :-1]), target[:, 1:])[0]
            yield f"{what}, loss", engine.train_step(
                engine.trainer(model, TrainingConfig()),
                source[None], target[None])["loss"]
    with unwarned():
        yield from trained(engine, source, target)


def training_in_turn(engine):
    """Training of a model by two trainers, and by a copy of one."""
    with unwarned():
        yield from trained_in_turn(engine, *(
            cases.ids(name, 2, 6, CONFIG.source_vocab)
            for name in ("source", "target")))


def trained_in_turn(engine, source, target):
    """Yield losses, between which weights are changed too."""
    model = engine.build("transformer", CONFIG, probe_weights(CONFIG, 3))
    training = TrainingConfig(schedule="constant", learning_rate=0.01)
    first, second = (engine.trainer(model, training) for _ in range(2))
    for i, trainer in enumerate((first, first, second, first)):
        yield f"in turn, loss {i}", engine.train_step(
            trainer, source[None], target[None])["loss"]
        if i == 1:
            multiplied(engine, model, "source_embedding.table", 0.5)
    if engine.NAME != "keras":  # which lets no layer be copied
        first = copy.deepcopy(first)
    for i in 1, 2:
        yield f"of a copy, loss {i}", engine.train_step(
            first, source[None], target[None])["loss"]
    model = engine.build("transformer", CONFIG, probe_weights(CONFIG, 3))
    transposed(engine, model)
    trainer = engine.trainer(model, training)
    for i in 1, 2:
        yield f"of transposed weights, loss {i}", engine.train_step(
            trainer, source[None], target[None])["loss"]


def trained(engine, source, target):
    """Yield a gradient, and losses between which training is resumed."""
    config = CONFIG.replace(tied="none")
    model = engine.build("transformer", config, probe_weights(config, 3))
    part = model.decoder.layers[0].feed_forward
    part.__class__ = type(type(part))("Another", (type(part),), {})
    trainer = engine.trainer(
        model, TrainingConfig(schedule="constant", learning_rate=0.01))
    yield "gradient", engine.gradients(
        model, *Batch.of_ids(source, target[:, :-1]), target[:, 1:])[1][
            "decoder.layers.0.feed_forward.inner.kernel"]
    for step in 1, 2, 3:
        yield f"loss {step}", engine.train_step(
            trainer, source[None], target[None])["loss"]
        engine.resume(trainer, step, engine.moments(trainer))


def answers(engine, model, what):
    """Yield what a model writes and predicts, weights laid out if it may."""
    source = cases.ids("source", 2, 6, CONFIG.source_vocab)
    with (unwarned(), lowered(engine, "layout", LONG=1, **STRIPS),
          lowered(engine, "search", LONG=1)):
        for rows in 1, 2:
            for name, array in engine.generate(
                    model, source[:rows], GenerationConfig(
                        max_tokens=3, eos_id=2)).items():
                yield f"{what}, {rows}, {name}", array
        yield f"{what}, predicted", engine.predict(
            model, *Batch.of_ids(source, source))


@contextlib.contextmanager
def unwarned():
    """Nothing is said of parts that are not as they were built."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotAsBuilt)
        yield


def at(engine, model, path):
    """A model's part; Keras has another name for attention's maps."""
    for name in path.split(".") if path else ():
        if engine.NAME == "keras" and name in (
                "query", "key", "value", "output"):
            name += "_dense"
        model = model[int(name)] if name.isdigit() else getattr(model, name)
    return model


def twice(function):
    """The function, which returns twice as much."""
    def doubling(*given, **keywords):
        y = function(*given, **keywords)
        return (2 * y[0], *y[1:]) if isinstance(y, tuple) else 2 * y
    return doubling


def doubled(module, name=""):
    """Have a module return twice what its kind does, or a method of it."""
    kind = type(module)
    name = name or next(name for name in ("call", "forward", "__call__")
                        if hasattr(kind, name))
    module.__class__ = type(kind)(
        "Another", (kind,), {name: twice(getattr(kind, name))})


def with_methods(engine, model):
    """Give a model methods of its own."""
    for name in "decode", "project":
        setattr(model, name, twice(getattr(model, name)))


def hooked(engine, model):
    """Double what a part gives, by a hook where there are hooks."""
    part = model.decoder.layers[0].self_attention
    if engine.NAME == "torch":
        part.register_forward_hook(lambda module, given, y: 2 * y)
    else:
        doubled(part)


def hooked_before(engine, model):
    """Double what a map is given, by a hook where there are hooks."""
    part = at(engine, model, "decoder.layers.0.self_attention.query")
    if engine.NAME == "torch":
        part.register_forward_pre_hook(lambda module, given: (2 * given[0],))
    else:
        kind, name = type(part), "call" if engine.NAME == "keras" else (
            "__call__")
        given = getattr(kind, name)
        part.__class__ = type(kind)("Another", (kind,), {
            name: lambda self, x: given(self, 2 * x)})


def with_an_output(engine, model):
    """Give a model another function of its logits."""
    model.output_function = twice(model.output_function)


def with_a_divisor(engine, model):
    """Give an attention another divisor; Keras has it as a factor too."""
    attention = model.decoder.layers[0].self_attention
    attention.divisor = 5.0
    if engine.NAME == "keras":
        attention._inverse_sqrt_key_dim = np.float64(1 / 5)


def with_a_map_twice(engine, model):
    """Have an attention take values for keys."""
    attention = model.decoder.layers[0].cross_attention
    if engine.NAME == "keras":
        attention._key_dense = attention.value_dense
    else:
        attention.key = attention.value


def with_a_table(engine, model):
    """Give a model another table of positions."""
    for side in model.source_positions, model.target_positions:
        side.positions = (lambda *given, own=side.positions: 1.5 * own(*given))


def with_a_start(engine, model):
    """Have a model's positions begin elsewhere."""
    own = model.target_positions.positions
    model.target_positions.positions = lambda x, tokens, start, *steps: own(
        x, tokens, start + 3, *steps)


def transposed(engine, model):
    """Have a map's kernel, and a table, lie in memory the other way round."""
    module = importlib.import_module(
        f"{engine.__package__.removesuffix('.fast')}.parameters")
    for weight in module.leaves(model):
        if weight.name in ("source_embedding.table",
                           "decoder.layers.0.feed_forward.inner.kernel"):
            if engine.NAME == "numpy":
                weight.set(np.asfortranarray(weight.get()))
            elif engine.NAME == "torch":
                weight.get().data = weight.get().data.T.contiguous().T


def with_a_function(engine, model):
    """Double what a map gives, by its activation where it may have one."""
    part = at(engine, model, PARTS[0])
    if engine.NAME == "keras":
        part.activation = twice(part.activation)
    else:
        doubled(part)


def multiplied(engine, model, name, factor):
    """Multiply a weight of a model, as its users do; returns the old one."""
    module = importlib.import_module(
        f"{engine.__package__.removesuffix('.fast')}.parameters")
    weight = {each.name: each for each in module.leaves(model)}[name]
    old = engine.to_native(np.array(engine.to_numpy(weight.get())), "cpu")
    weight.set(factor * old)
    return old


FAST = (parts_of_others, ways_of_others, ways_of_a_rotary_model,
        changes_after_answers, parts_in_turn, training_of_others,
        training_in_turn)
TRAINED = training_of_others, training_in_turn
