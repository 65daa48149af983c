"""A torch.nn.Module's run as operations; see parity.operations.program."""

import time

import torch

from parity_io.errors import InputError
from parity.operations.program import INPUT, PARAMETER, Rounding
from parity.operations.torch_built import rebuilt
from parity.operations.torch_recording import outputs_of, recording
from parity.tracing.recorder import argument_names, mapped
from parity.tracing.torch import (
    is_compiled, modules, named_arrays, put_back)


class Runner:
    """Runs a torch.nn.Module, see ``parity.operations.program.Runner``."""

    framework = "torch"

    def __init__(self, model, inputs, keywords, make=None):
        if is_compiled(model):
            raise InputError(
                "a compiled model cannot be seen as operations; hand in the "
                "module that was given to torch.compile.")
        if isinstance(model, torch.jit.ScriptModule):
            raise InputError(
                "a scripted model cannot be seen as operations; hand in the "
                "torch.nn.Module that it was made of.")
        self.model, self.inputs, self.keywords = model, inputs, keywords
        self.make, self.built, self.before = make, None, {}

    def run(self, exact=False, edits=None, keep=True):
        """Run the model once; see ``parity.operations.program.Runner``."""
        began = time.perf_counter()
        model = self.exact_model() if exact and self.make else self.model
        tensors, _ = named_arrays(model)
        names = [(PARAMETER, path, tensor)
                 for path, tensor in tensors.items()]
        given, by_keyword = argument_names(
            model.forward, self.inputs, self.keywords)

        def visit(name, leaf):
            if isinstance(leaf, torch.Tensor):
                names.append((INPUT, name, leaf))
            return leaf
        for name, value in (*zip(given, self.inputs),
                            *self.keywords.items()):
            mapped(value, name, visit)
        paths = {id(module): path for path, module in modules(model)}
        with put_back(model), torch.no_grad(), recording(
                names, exact, edits, keep, paths,
                *self.before.get(exact, (None, None)),
                end=Runner.run.__code__) as mode:
            inputs, keywords = self.inputs, self.keywords
            if model is not self.model:  # made anew: it has float64 inside
                inputs, keywords = (mapped(
                    each, "", lambda _, leaf: mode.given(leaf))
                    for each in (inputs, keywords))
            output = model(*inputs, **keywords)
            outputs = outputs_of(mode, output)
        program = mode.program
        program.outputs = outputs
        program.roundings = [Rounding(place, dtype, count) for (
            place, dtype), count in mode.roundings.items()]
        if exact and mode.autocast:
            program.roundings += self.autocast()
        program.seconds = time.perf_counter() - began
        self.before.setdefault(exact, (program, mode.unchanged.marks))
        return program

    def autocast(self):
        """A Rounding of each line that autocast computes in something
        shorter: in float64 it casts nothing, and so is seen as it is."""
        plain, counts = self.run(), {}
        for operation in plain.operations:
            for made in map(plain.values.__getitem__, operation.results):
                if operation.name == "cast" and made.dtype in (
                        "bfloat16", "float16"):
                    key = operation.place, made.dtype
                    counts[key] = counts.get(key, 0) + made.signature.size
        return [Rounding(*key, count) for key, count in counts.items()]

    def exact_model(self):
        """The model, built anew with tables in float64."""
        if self.built is None:
            self.built = rebuilt(self.make, self.model)
        return self.built
