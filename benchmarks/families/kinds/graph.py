"""Networks of graphs: GCN and GAT."""

import numpy as np

from benchmarks.families.fault import BIAS, MASK, SOFTMAX, either, number
from benchmarks.families.hugging import OurPort, OwnOriginal

CONFIG = {"given": 5, "width": 6}


def graph():
    """Seven nodes; an edge may point one way."""
    rng = np.random.default_rng(4)
    edges = np.triu(rng.random((7, 7)) < 0.4, 1)
    edges = edges | edges.T
    edges[0, 3], edges[5, 1] = True, False
    return {"x": rng.normal(size=(7, 5)), "edges": edges.astype(np.float64)}


GRAPH = OwnOriginal("graph", "graph_torch", "Model", CONFIG, graph)
NNX = OurPort("graph", "graph_nnx", GRAPH.plain, lambda: graph().values(),
              CONFIG)

LOOPS = r"eye|diag|loop|identity|themselves|summand|added§\+"
NORMED = r"exponent|degree|normali[sz]|scale|factor|root|√|times§pow|sqrt|\*"


def originals():
    """Faults in copies of the original."""
    of = GRAPH.fault
    yield of("no edges to oneself", (LOOPS,), (
        "a = edges + torch.eye(len(edges))",
        "a = edges + 1e-9 * torch.eye(len(edges))"))
    yield of("normed by rows alone", (NORMED,), (
        "(root[:, None] * a * root)", "(root[:, None] ** 2 * a)"))
    yield of("edges the other way", (r"transpos|order|T\b|edges|axes",), (
        "y = torch.einsum(\"tsh,shk->thk\"", "y = torch.einsum(\"sth,shk->thk\""
    ))
    yield of("source and target exchanged", (
        r"exchang|swap|order|@source.*target|transpos",), (
        "scores = target[:, None] + source[None]",
        "scores = source[:, None] + target[None]"))
    yield of("leaky by 0.01", (number(0.2), number(0.01)), (
        "functional.leaky_relu(scores, 0.2)",
        "functional.leaky_relu(scores)"))
    yield of("sum, not mean, of nodes", (
        r"\bsum|mean|pool|count|\b7\b|0\.14\d*",), (
        "x.mean(0, keepdim=True)", "x.sum(0, keepdim=True)"))
    yield of("bias before the neighbours", (
        either(BIAS, "order|before|place"),), (
        "return (root[:, None] * a * root) @ self.lin(x) + self.bias",
        "return (root[:, None] * a * root) @ (self.lin(x) + self.bias)"))


def ports():
    """Faults in a port to nnx."""
    of = NNX.fault
    yield of("normed once", (NORMED,), (
        "root = 1 / jnp.sqrt(a.sum(1))", "root = a.sum(1) ** -0.25"))
    yield of("degrees without oneself", (
        either(LOOPS, NORMED),), (
        "root = 1 / jnp.sqrt(a.sum(1))",
        "root = 1 / jnp.sqrt(jnp.maximum(edges.sum(1), 1))"))
    yield of("softmax over targets", (
        either(SOFTMAX, r"ax[ie]s§axis=|dim"),), (
        "-jnp.inf), axis=1)", "-jnp.inf), axis=0)"))
    yield of("no mask of strangers", (MASK,), (
        "jax.nn.softmax(jnp.where(kept, scores, -jnp.inf), axis=1)",
        "jax.nn.softmax(scores, axis=1)"))
    yield of("nnx's momentum for ε", (number(1e-5), number(1e-3)), (
        "epsilon=1e-5, rngs", "epsilon=1e-3, rngs"))
    yield of("statistics of this graph", (
        r"batch|training|running|statistic|\bmean",), (
        "use_running_average=True", "use_running_average=False"))
    yield of("relu, not elu", (r"elu|expm1|activation|\bexp\b|max",), (
        "x = jax.nn.elu(", "x = jax.nn.relu("))
    yield of("heads summed", (
        r"\bsum|mean|concat|heads|reshape|head",), (
        "return y.reshape(len(x), -1) + self.bias[...]",
        "y = jnp.tile(y.mean(1), (1, self.heads))\n"
        "        return y.reshape(len(x), -1) + self.bias[...]"),
        within=True)


def pairs():
    """All of them."""
    other = GRAPH.fault("sound: the weight is last", (), (
        "(root[:, None] * a * root) @ self.lin(x) + self.bias",
        "self.lin((root[:, None] * a * root) @ x) + self.bias"))
    return [GRAPH.sound(), other, NNX.sound(), *originals(), *ports()]
