"""torch.compile, torch.export, jax.jit, nnx.jit and tf.function."""

import functools

from benchmarks.deployed.case import DeployedCase
from benchmarks.deployed.sides import asked
from benchmarks.deployed.torch_net import FAULTS, SOUND, inputs, net

KIND = "compiled"

#: How a torch model is compiled or exported.
WAYS = ("eager", "aot_eager", "export")


def compiled(way, **s):
    """A model compiled or exported, and its inputs."""
    import torch
    model, x = net(**s), inputs(**s)
    if way == "export":
        return torch.export.export(model, x), x, {}
    if way == "part":
        model.block.compile(backend="eager")
        return model, x, {}
    return torch.compile(model, backend=way), x, {}


def eager(**s):
    """The model as it is."""
    return net(**s), inputs(**s), {}


def passes(find, change):
    """A backend that changes the nodes of a graph that ``find`` finds."""
    def backend(graph, example):
        for node in graph.graph.nodes:
            if find in str(node.target):
                change(node)
        graph.recompile()
        return graph.forward
    return backend


def put_keyword(name, value):
    """What sets a keyword of a node."""
    def change(node):
        node.kwargs = {**node.kwargs, name: value}
    return change


def put_argument(place, value):
    """What sets an argument of a node."""
    def change(node):
        node.args = (*node.args[:place], value, *node.args[place + 1:])
    return change


#: Backends that are wrong: name -> (backend, words of the cause).
BACKENDS = {
    "gelu by tanh": (passes("gelu", put_keyword("approximate", "tanh")),
                     "gelu"),
    "softmax over the first axis": (passes("softmax", put_argument(1, 0)),
                                    "softmax|order|axis"),
    "another epsilon": (passes("layer_norm", put_argument(4, 1e-2)),
                        "epsilon"),
    "mul for add": (passes("function add", lambda node: setattr(
        node, "target", __import__("operator").mul)), "."),
}


def jitted(kind, wrong):
    """(eager module, compiled function) of JAX or TensorFlow."""
    from benchmarks.deployed import jitted as made
    return getattr(made, kind)(wrong)


def cases():
    """Every DeployedCase."""
    for number, (name, (s, says)) in enumerate(FAULTS.items()):
        way = WAYS[number % 3]
        yield DeployedCase(KIND, f"{name}, {way}", functools.partial(
            asked, eager, functools.partial(compiled, way, **s)), says,
            r"\.py:")
    for name, (backend, says) in BACKENDS.items():
        yield DeployedCase(KIND, f"backend: {name}", functools.partial(
            asked, eager, functools.partial(compiled, backend)), says,
            r"\.py:")
    for kind in ("jit", "nnx_jit"):
        for wrong in ("tanh", "epsilon"):
            yield DeployedCase(KIND, f"{kind}: {wrong}", functools.partial(
                asked, functools.partial(jitted, "plain", ""),
                functools.partial(jitted, kind, wrong)),
                "gelu" if wrong == "tanh" else "epsilon", r"\.py:")
    for number, (name, s) in enumerate(SOUND.items()):
        way = WAYS[number % 3]
        yield DeployedCase(KIND, f"{name}, {way}", functools.partial(
            asked, functools.partial(eager, **s), functools.partial(
                compiled, way, **s)))
    yield DeployedCase(KIND, "a part", functools.partial(
        asked, eager, functools.partial(compiled, "part")))
    for kind in ("jit", "nnx_jit"):
        yield DeployedCase(KIND, kind, functools.partial(
            asked, functools.partial(jitted, "plain", ""),
            functools.partial(jitted, kind, "")))
