"""A ``tf.function`` run again, operation by operation, eagerly."""

import tensorflow as tf
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import function_def_to_graph, op_def_registry

from parity.operations.program import Place

#: They would change something a second time.
WRITES = {"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp",
          "Assert", "NoOp", "PrintV2", "DestroyResourceOp"}

CALLS = {"PartitionedCall", "StatefulPartitionedCall"}
LOOPS = {"While", "StatelessWhile"}
BRANCHES = {"If", "StatelessIf"}


def graph_of(name, frames=()):
    """The graph of a function by name, or None.

    Args:
        frames: a stack, in which the function itself may be found: its graph
            alone knows its lines of source.
    """
    for frame in frames:
        found = frame.f_locals.get("self")
        if type(found).__name__ == "AtomicFunction" and name in (
                found.name, getattr(found.name, "decode", str)()):
            return found.graph
    definition = context.context().get_function_def(name)
    if definition is None:
        return None
    return function_def_to_graph.function_def_to_graph(definition)


def _plain(value):
    """An attribute as the eager executor wants it."""
    kind = value.WhichOneof("value")
    match kind:
        case "list":
            for name in ("s", "i", "f", "b", "type", "shape", "tensor"):
                if items := list(getattr(value.list, name)):
                    return items
            return []
        case "shape":
            return None if value.shape.unknown_rank else [
                None if size.size < 0 else size.size
                for size in value.shape.dim]
        case "func":
            return value.func.name
    return getattr(value, kind) if kind else None


def _done(op, inputs, recording):
    """What one operation of a graph gives."""
    attributes = op.node_def.attr
    if op.type == "Const":
        return [recording.constant(tf.make_ndarray(attributes["value"].tensor))]
    if op.type in CALLS:
        return run(graph_of(attributes["f"].func.name), inputs, recording)
    if op.type in LOOPS:
        test = graph_of(attributes["cond"].func.name)
        body = graph_of(attributes["body"].func.name)
        while bool(run(test, inputs, recording)[0]):
            inputs = run(body, inputs, recording)
        return inputs
    if op.type in BRANCHES:
        branch = "then_branch" if bool(inputs[0]) else "else_branch"
        return run(graph_of(attributes[branch].func.name), inputs[1:],
                   recording)
    known = {attribute.name for attribute in op_def_registry.get(op.type).attr}
    plain = {name: _plain(value) for name, value in attributes.items()
             if name in known}
    flat = tuple(part for pair in plain.items() if pair[1] is not None
                 for part in pair)
    return execute.execute(op.type, len(op.outputs), list(inputs), flat,
                           context.context())


def run(graph, inputs, recording):
    """What a graph gives.

    Args:
        inputs: eager tensors, captured ones among them.
        recording: makes the constants, and is told the lines.
    """
    made, before = {}, recording.frames.within
    for symbol, tensor in zip(graph.inputs, inputs):
        made[symbol.ref()] = tensor
    for op in graph.get_operations():
        if op.type == "Placeholder" or op.type in WRITES:
            continue
        recording.frames.within = line_of(op, recording.frames) or before
        results = _done(op, [made[source.ref()] for source in op.inputs],
                        recording)
        for symbol, tensor in zip(op.outputs, results):
            made[symbol.ref()] = tensor
    recording.frames.within = before
    return [made[symbol.ref()] for symbol in graph.outputs]


def line_of(op, frames):
    """The Place that asked for an operation of a graph, or None."""
    return next((Place(line.filename, line.lineno, line.name)
                 for line in reversed(op.traceback or ())
                 if frames.kind(line.filename) == 0), None)
