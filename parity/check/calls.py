"""Ways to get numbers out of a model beside its call, each a kind of case.

Each is a function of an EngineRunner, a Case and its inputs, and returns arrays
by name, which are compared as steps are. What has to be equal to the bit is a
step of booleans, and the truth is that all are True.
"""

import inspect

import numpy as np

from transformer_contract import weights

#: How many arrays a model takes.
INPUTS = 4


def key(case):
    """What a case's run drops values by: two uint32, or None."""
    return None if case.key is None else np.array(case.key, np.uint32)


def forward(runner, case, inputs):
    """Every step of a model, with dropout where the case has a key."""
    return runner.engine.forward(runner.model, *inputs, key=key(case))


def outputs(runner, case, inputs):
    """What a model answers, asked in every way that there is."""
    engine, model = runner.engine, runner.model
    returned, steps = engine.call(model, *inputs)
    return {"returned": returned, "output": steps["output"],
            "forward": engine.forward(model, *inputs)["output"],
            "predict": engine.predict(model, *inputs)}


def predict(runner, case, inputs):
    """What a model answers, and none of its steps."""
    return {"output": runner.engine.predict(runner.model, *inputs)}


def again(runner, case, inputs):
    """A model asked about one batch, another of its shape, the first again.

    The first and third answers are equal to the bit, and no answer changes
    once it is given.
    """
    engine, model = runner.engine, runner.model
    batches = inputs[:INPUTS], inputs[INPUTS:], inputs[:INPUTS]
    replies = [engine.forward(model, *batch) for batch in batches[:1]]
    copies = {name: np.copy(value) for name, value in replies[0].items()}
    predicted = np.copy(engine.predict(model, *batches[0]))
    replies += [engine.forward(model, *batch) for batch in batches[1:]]
    first, second, third = replies
    return {
        "output, first batch": copies["output"],
        "output, second batch": second["output"],
        "output, first batch again": third["output"],
        "steps equal to the bit": same(copies, third),
        "steps unchanged afterwards": same(copies, first),
        "predictions equal to the bit": same(
            {"": predicted}, {"": engine.predict(model, *batches[2])}),
    }


def compiled(runner, case, inputs):
    """A model's answers to two batches, compiled where an engine can be."""
    engine = runner.engine
    form = ({"compiled": True}
            if "compiled" in inspect.signature(engine.call).parameters else {})
    return {f"output, {which} batch": engine.run(
        runner.model, *batch, **form)["output"] for which, batch in (
            ("first", inputs[:INPUTS]), ("second", inputs[INPUTS:]))}


def same(ours, theirs):
    """Whether arrays of the same names are all equal to the bit: bool [1]."""
    return np.array([ours.keys() == theirs.keys() and all(
        value.dtype == theirs[name].dtype
        and value.tobytes() == theirs[name].tobytes()
        for name, value in ours.items())])


def answers(runner, case, inputs):
    """What a model answers, its loss and its gradient; of a part its output.

    The steps between are not asked for.
    """
    if case.component != "transformer":
        return {"output": runner.engine.run(
            runner.module(case), *inputs, **case.keywords)["output"]}
    engine, model, weights = runner.engine, runner.model, runner.weights
    loss, gradients = engine.gradients(model, *inputs, key(case))
    return {"output": engine.predict(model, *inputs[:INPUTS]), "loss": loss,
            **{f"grad {name}": gradients[name] for name in weights
               if name in gradients},
            "all weights": np.concatenate([
                gradients[name].ravel() for name in weights
                if name in gradients])}


def exported(runner, case, inputs):
    """A model's weights as it hands them out, in one vector."""
    arrays = runner.engine.export(runner.model)
    return {"names": np.array([arrays.keys() == runner.weights.keys()]),
            "exported": np.concatenate(
                [arrays[name].ravel() for name in runner.weights])}


def initial(runner, case, inputs):
    """The bytes of a digest of initial weights, for each of some seeds."""
    return {f"seed {seed}": np.frombuffer(bytes.fromhex(weights.digest(
        runner.engine.initial_weights(runner.config, seed))), np.uint8)
        for seed in inputs[0].tolist()}


def padding_loss(runner, case, inputs):
    """Whether the loss of labels that are padding alone is 0."""
    loss = runner.engine.loss(
        *inputs, runner.config.pad_id, *case.smoothing, runner.device)
    return {"loss is 0": np.array([loss == 0])}


KINDS = {"forward": forward, "outputs": outputs, "predict": predict,
         "again": again,
         "compiled": compiled, "answers": answers,
         "exported": exported, "initial": initial,
         "padding_loss": padding_loss}
