"""A model as arrays for a compiled function, and the model made of them again.

nnx.split visits each module and each Variable anew, which takes as long as five
tokens of a search by the paper's base model. What it says is kept here, and
used as long as the model consists of the same objects.
"""

import operator
import weakref

import jax
from flax import nnx

#: A model -> its Kept by the kinds of Variables that were asked for.
KEPT = weakref.WeakKeyDictionary()

#: Each SplitGraph once: models of one structure share what is compiled.
GRAPHS = {}


class SplitGraph:
    """A model without its arrays; equal for models of the same structure."""

    def __init__(self, graph, trees):
        self.graph, self.trees = graph, trees
        self.hash = hash((graph, *trees))  # nnx: made anew at each call

    def __hash__(self):
        return self.hash

    def __eq__(self, other):
        return self is other or (
            isinstance(other, SplitGraph) and self.graph == other.graph
            and self.trees == other.trees)

    def merge(self, *arrays):
        """The model of some arrays, a list for each kind."""
        return nnx.merge(self.graph, *map(
            jax.tree.unflatten, self.trees, arrays))


def structure(model, *kinds):
    """A model's SplitGraph, and its Variables' paths: a list each kind."""
    graph, *states = nnx.split(model, *kinds)
    graph = SplitGraph(graph, tuple(map(jax.tree.structure, states)))
    return GRAPHS.setdefault(graph, graph), [
        [path for path, _ in nnx.to_flat_state(state)] for state in states]


class Kept:
    """What nnx.split said of a model, and of which objects it was said."""

    def __init__(self, model, kinds):
        self.parts = parts(model)
        self.graph, paths = structure(model, *kinds)
        self.variables = [[at(model, path) for path in each]
                          for each in paths]

    def is_of(self, model):
        """Whether the model consists of the same objects still."""
        now = parts(model)
        return len(now) == len(self.parts) and all(
            map(operator.is_, now, self.parts))


def parts(model):
    """All that stands in a model's modules, each module's one by one."""
    found, seen = [model], set()
    for part in found:  # grows while it is read
        if isinstance(part, nnx.Pytree) and id(part) not in seen:
            seen.add(id(part))
            found.extend(vars(part).values())
    return found[1:]  # a model that is kept by what it has would never go


def at(node, path):
    """What stands in a module at a path of nnx's."""
    for name in path:
        node = node[name] if isinstance(name, int) else getattr(node, name)
    return node


def split(model, *kinds):
    """A model's SplitGraph, and its arrays: a list each kind, or one of all."""
    kept = of(model, kinds)
    return kept.graph, *([variable.get_raw_value() for variable in variables]
                         for variables in kept.variables)


def put(model, arrays, *kinds):
    """Put the arrays of the first kind into a model, as split gives them."""
    for variable, array in zip(of(model, kinds).variables[0], arrays):
        variable.set_value(array)


def of(model, kinds):
    """A model's Kept."""
    known = KEPT.setdefault(model, {})
    if kinds not in known or not known[kinds].is_of(model):
        known[kinds] = Kept(model, kinds)
    return known[kinds]
