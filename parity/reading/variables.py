"""Values of steps that no module records: of losses, searches and training.

Where a step is a local variable of a function, the function is run and its
variables are read as it returns. In a loop they are those of the last turn.
"""

import ast
import contextlib
import dataclasses
import functools
import importlib
import inspect
import pathlib

import numpy as np

from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig

#: Owner of steps -> file, and the functions that hold them as variables.
OWNERS = {
    "cross_entropy": ("loss", ("cross_entropy",)),
    "Dropout": ("dropout", ("forward", "call", "__call__")),
    "Cache": ("cache", ("extend",)),
    "Greedy": ("search", ("run",)),
    "Beam": ("search", ("run", "is_done")),
    "DialectBeam": ("dialects.search", ("outcome",)),
    "Sample": ("sample", ("choose",)),
    "loss_and_gradients": ("train", ("loss_and_gradients",)),
    "Trainer": ("train", ("train_step",)),
}

#: Seeds a run's dropout.
KEY = np.array([0, 1], np.uint32)

#: What tells variables, before its owner's name.
TELL = "_tell_variables_of_"

#: A beam's width.
WIDTH = 2


def functions(engine):
    """{owner: its functions} of OWNERS, as an implementation has them."""
    found = {}
    for owner, (file, names) in OWNERS.items():
        module = importlib.import_module(f"{engine.__package__}.{file}")
        place = module if owner in names else getattr(module, owner)
        found[owner] = [function for name in names
                        if hasattr(function := vars(place).get(name),
                                   "__code__")]
    return found


@contextlib.contextmanager
def variables(engine):
    """Yield {owner: {name: value}}, which fills while functions return.

    Meanwhile each has the code of code_that_tells, which costs nothing
    elsewhere; a profiler would be called by every function that runs.
    """
    before = []
    values: dict = {}
    try:
        for owner, kept in functions(engine).items():
            for function in kept:
                before.append((function, function.__code__))
                function.__globals__[TELL + owner] = functools.partial(
                    tell, values, owner)
                function.__code__ = code_that_tells(function, owner)
        yield values
    finally:
        for function, code in before:
            function.__code__ = code
        for owner, kept in functions(engine).items():
            for function in kept:
                function.__globals__.pop(TELL + owner, None)


def tell(values, owner, names):
    """Note the variables of an owner's function."""
    values.setdefault(owner, {}).update(names)


def code_that_tells(function, owner):
    """A function's code with its variables told as it returns."""
    path = inspect.getsourcefile(function)
    tree = ast.parse(pathlib.Path(path).read_text("utf-8"), path)
    for node in ast.walk(tree):
        if (isinstance(node, ast.FunctionDef)
                and node.name == function.__name__
                and function.__code__.co_firstlineno in (
                    node.lineno, *(each.lineno for each
                                   in node.decorator_list))):
            told = ast.parse(f"{TELL}{owner}(locals())").body
            node.body = [ast.Try(node.body, [], [], told)]
    todo = [compile(ast.fix_missing_locations(tree), path, "exec")]
    while todo:
        code = todo.pop()
        if code.co_qualname == function.__code__.co_qualname:
            return code
        todo += [each for each in code.co_consts if inspect.iscode(each)]
    raise LookupError(f"{path} has no {function.__qualname__}.")


def array_of(engine, value):
    """A variable as an array; of several arrays, the first; else None."""
    if isinstance(value, (list, tuple)):
        value = value[0] if value else None
    if value is None or isinstance(value, (str, dict, tuple)):
        return None
    try:
        array = np.asarray(engine.to_numpy(value))
    except Exception:  # whatever else a function has for variables
        return None
    if array.dtype.kind in "iu":  # libraries count in widths of their own
        return array.astype(np.int64)
    return array if array.dtype.kind in "bf" else None


def steps(engine, model, config, weights, batch, labels, tokenizer, longest):
    """The variables, as one implementation has them, and its answer.

    Args:
        engine, model: an implementation and a Transformer of it.
        config, weights: what the model was built from.
        batch, labels: what is read and what is to be predicted.
        tokenizer: has the ids that searches begin and end with.
        longest: how many tokens a search writes at most.

    Returns:
        {(owner, name): array}, and the tokens and scores of greedy search.
    """
    arrays = {}

    def keep(values, *owners):
        arrays.update({
            (owner, name): array for owner in owners
            for name, value in values.get(owner, {}).items()
            if (array := array_of(engine, value)) is not None})

    base = GenerationConfig(
        bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id,
        max_tokens=longest, beam=WIDTH)
    for method, owner, changes in (
            ("greedy", "Greedy", {}), ("beam", "Beam", {}),
            ("beam", "DialectBeam", {"unfinished": "fallback"}),
            ("sample", "Sample", {})):
        with variables(engine) as values:
            answer = engine.generate(
                model, batch.source, base.replace(method=method, **changes))
        keep(values, owner, *(["Cache"] if method == "greedy" else []))
        if method == "greedy":
            found = answer
    # Here what is differentiated may be symbols, so the loss is run after it.
    dropped = dataclasses.replace(config, dropout=config.dropout or 0.1)
    module = engine.build("transformer", dropped, weights, "float64")
    targets = np.concatenate([batch.target, labels[:, -1:]], axis=1)
    with variables(engine) as values:
        engine.train_step(
            engine.trainer(module, TrainingConfig(clip_norm=1.0)),
            batch.source[None], targets[None])
    keep(values, "loss_and_gradients", "Trainer")
    # The last weight of a list is another one in each framework.
    arrays["Trainer", "weight"] = engine.export(module)[next(iter(weights))]
    module = engine.build("transformer", dropped, weights, "float64")
    with variables(engine) as values:
        output = engine.forward(module, *batch, key=KEY)["output"]
        engine.loss(output, labels, config.pad_id, config.label_smoothing,
                    config.smoothing)
    keep(values, "Dropout", "cross_entropy")
    return arrays, found
