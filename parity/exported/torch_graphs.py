"""torch.compile and torch.export: what they make, run as operations.

A compiled module is run for its outputs. For its operations the graphs that
its backend was given, and what the backend made of them, are caught with their
inputs, and what was made runs once more as operations.
"""

import copy
import re
from typing import Any

import torch

from parity_io.errors import InputError
from parity.quiet import without_logs
from parity.exported.model import ExportedModel
from parity.exported.functions import arrays
from parity.operations.frames import TELLING, folder_of
from parity.operations.program import Place
from parity.operations.torch import Runner
from parity.tracing.recorder import mapped
from parity.tracing.torch import is_compiled, named_arrays, put_back


def loaded(path, inputs, keywords):
    """The ExportedModel of a file of torch.export.save."""
    try:
        with without_logs("torch.export"):
            program = torch.export.load(str(path))
    except Exception as error:
        words = " ".join(str(error).split())[:160].rstrip(".")
        raise InputError(f"{str(path)!r} is no program that torch.export can "
                         f"read ({words}); export it again.") from None
    return opened(program, inputs, keywords)


def opened(model, inputs, keywords):
    """The ExportedModel of a compiled or exported program; None of a module."""
    if isinstance(model, torch.export.ExportedProgram):
        return exported(model.module(), inputs, keywords)
    if is_compiled(model):
        return compiled(model, inputs, keywords)
    if isinstance(model, torch.nn.Module):
        inside = [path for path, module in model.named_modules()
                  if is_compiled(module)
                  or getattr(module, "_compiled_call_impl", None)]
        if inside:
            return compiled(model, inputs, keywords)
    return None


def exported(module, inputs, keywords):
    """The ExportedModel of an exported program, as the module that runs it."""
    with torch.no_grad(), put_back(module):
        try:
            output = module(*inputs, **keywords)
        except Exception as error:
            words = " ".join(str(error).split())[:200].rstrip(".")
            raise InputError(
                f"the exported program cannot be run on these inputs "
                f"({words}); give those that it was exported for.") from None
    return _foreign(module, inputs, keywords, output, "exported program",
                    lambda: Runner(Graph(module), inputs, keywords))


def compiled(model, inputs, keywords):
    """The ExportedModel of a module that is compiled, or has compiled parts."""
    with torch.no_grad(), put_back(model):
        output = model(*inputs, **keywords)
    def runner():
        caught = Caught(model, inputs, keywords)
        if not caught.kept:
            made.late.append("what the backend made computes another thing "
                             "than the graph that it was given.")
        return Runner(caught, inputs, keywords)
    made = _foreign(model, inputs, keywords, output, "compiled module", runner)
    return made


def _foreign(model, inputs, keywords, output, kind, runner):
    found = {}

    def visit(name, leaf):
        if isinstance(leaf, torch.Tensor):
            found[name] = leaf.detach().cpu().numpy() if (
                leaf.dtype != torch.bfloat16) else (
                leaf.detach().cpu().float().numpy())
        return leaf
    mapped(output, "output", visit)
    return ExportedModel(
        "torch", kind, arrays(inputs, keywords), found,
        {"torch": torch.__version__},
        {path.removeprefix("_orig_mod."): tensor.detach().cpu().numpy()
         for path, tensor in named_arrays(model)[0].items()
         if tensor.dtype != torch.bfloat16}, runner=runner)


def near(one, two):
    """Whether two tensors are the same within what a compiler may change."""
    if not isinstance(one, torch.Tensor) or not one.is_floating_point():
        return not isinstance(one, torch.Tensor) or torch.equal(one, two)
    size = one.abs().max() if one.numel() else 0
    limit = 32 * torch.finfo(one.dtype).eps
    return bool(((one - two).abs() <= limit * size).all())


class Graph(torch.nn.Module):
    """An exported program, run node by node; a node tells its source."""

    def __init__(self, module):
        super().__init__()
        self.program = module
        self.training = module.training

    def forward(self, *inputs, **keywords):
        """The output."""
        if keywords:
            return self.program(*inputs, **keywords)
        return Interpreter(self.program).run(*inputs)


class Interpreter(torch.fx.Interpreter):
    """Runs a graph so that the line and module of each node can be seen."""

    def run_node(self, n):
        """What a node makes."""
        return node_run(super().run_node, n, *where(n))


def node_run(run, node, place, module):
    """Run a node; ``parity.operations.frames`` reads this frame."""
    return run(node)


TELLING.add(node_run.__code__)


def where(node):
    """The Place and the path of the module that a node was made of."""
    lines = re.findall(r'File "([^"]+)", line (\d+)',
                       node.meta.get("stack_trace") or "")
    lines = [line for line in lines
             if not line[0].startswith(folder_of("torch"))] or lines
    place = Place("graph", 0, node.name)
    for file, line in lines:
        place = Place(file, int(line), "", place if place.line else None)
    stack = [*(node.meta.get("nn_module_stack") or {"": ("",)}).values()]
    path = str(stack[-1][0])
    path = re.sub(r"L\['self'\]\.?|_modules\['([^']+)'\]|\[['\"]?(\w+)['\"]?\]",
                  lambda found: found[1] or (
                      f".{found[2]}" if found[2] else ""), path)
    return place, path.removeprefix("_orig_mod.").strip(".")


class Caught(torch.nn.Module):
    """A compiled module, whose graphs run as their backend made them.

    The graph that the backend was given runs as operations, if what the
    backend made of it computes the same; else that runs, which a recording
    sees where it is made of torch's operations. Both are caught in a run of
    their own, and then called outside of the compiler.
    """

    def __init__(self, model, inputs, keywords):
        super().__init__()
        self.model = getattr(model, "_orig_mod", model)
        self.calls: list = []
        torch.compiler.reset()

        def backend_of(inner):
            def backend(graph, example, **options):
                before = copy.deepcopy(graph)
                made = inner(graph, example, **options)

                def run(*values):
                    self.calls.append((before, made, values))
                    return made(*values)
                return run
            return backend
        self.caught = _recompiled(model, backend_of)
        with torch.no_grad(), put_back(model):
            self.output = self.caught(*inputs, **keywords)
        torch.compiler.reset()
        if len(self.calls) != 1:
            raise InputError(
                f"the compiled model is {len(self.calls)} graphs, and only one "
                "is seen as operations; compile it with fullgraph=True.")
        (graph, made, values), = self.calls
        with torch.no_grad():
            self.kept = all(map(near, graph(*values), made(*values)))
            self.run = Interpreter(graph).run
        if not self.kept:  # the backend computes another thing
            graph = getattr(made, "__self__", made)
            self.run = Interpreter(graph).run if isinstance(
                graph, torch.fx.GraphModule) else made
        self.values = values

    def forward(self, *inputs, **keywords):
        """The output of the graph, in the shape of the model's."""
        results = list(self.run(*self.values))

        def visit(_, leaf):
            return results.pop(0) if isinstance(leaf, torch.Tensor) else leaf
        return mapped(self.output, "output", visit)


def _recompiled(model, backend_of):
    """A compiled module once more, by a backend that is watched."""
    callback: Any = getattr(
        getattr(model, "dynamo_ctx", None), "callback", None)
    while hasattr(callback, "_torchdynamo_orig_backend"):
        callback = callback._torchdynamo_orig_backend
    callback = getattr(callback, "compiler_fn", callback)
    if not is_compiled(model):
        raise InputError(
            "parts of the model are compiled, and what they compute is not "
            "seen as operations; compile the whole, or give the parts.")
    if callback is None:
        raise InputError("by which backend the model was compiled is not "
                         "known; compile it by one that has a name.")
    return torch.compile(model._orig_mod, backend=backend_of(callback))
