"""Mixture of experts: a router chooses some networks for every row."""

import numpy as np

from parity.causes.formulas import activation, narrow
from parity.causes.formulas.family import Change, Family
from parity.causes.formulas.narrow import NARROW, UNIT, UNITS
from parity.matching.words import words_of
from parity.numerics.softmax import softmax
from parity.tracing.trace import is_float

#: How the parts of a gated network are called.
PARTS = {"gate": ("w1", "gate_proj", "wi_0", "linear_fc1_gate"),
         "up": ("w3", "up_proj", "wi_1", "v1"),
         "down": ("w2", "down_proj", "wo")}
FUSED = "gate_up_proj", "w13", "gate_up"
ROUTERS = {"gate", "router", "wg"}

#: How modules call the number of experts that a row is given to.
CHOSEN = ("top_k", "num_experts_per_tok", "num_experts_per_token",
          "moe_top_k", "k")

#: What float32 is used for inside.
ROUTING = "the router's weights"

#: Weights of the chosen experts, from all logits [N E] and who is chosen.
WEIGHTS = {
    "softmax over the chosen": lambda logits, chosen: softmax(
        np.where(chosen, logits, -np.inf)),
    "softmax over all experts": lambda logits, chosen: np.where(
        chosen, softmax(logits), 0),
    "sigmoid of each": lambda logits, chosen: np.where(
        chosen, activation.sigmoid(logits), 0),
    "sigmoid of each, to sum 1": lambda logits, chosen: _to_sum_1(np.where(
        chosen, activation.sigmoid(logits), 0)),
    "the logits themselves": lambda logits, chosen: np.where(
        chosen, logits, 0),
    "all alike": lambda logits, chosen: chosen / chosen.sum(
        -1, keepdims=True),
}

#: Which experts are chosen, by how many have a larger logit.
ORDERS = {"the largest": lambda place, count, k: place < k,
          "the smallest": lambda place, count, k: place >= count - k,
          "without the first": lambda place, count, k: (0 < place) & (
              place <= k)}


def _to_sum_1(x):
    return x / x.sum(-1, keepdims=True)


class Experts(Family):
    """Σ over the chosen of weight · down(f(gate x) · up x), and what is shared.

    Args:
        functions: () -> {name: function}, of activations.
    """

    name = "mixture of experts"
    whole = "top-k",
    narrow = (ROUTING,)

    def __init__(self, functions):
        self.functions = functions

    def readings(self, side):
        """Router [D E], gate and up [E D F], down [E F D], shared ones' too.
        """
        seen = side.seen[0]
        if not seen.floats or seen.x.shape != seen.output.shape:
            return
        roles = arrays_of(side, seen.x.shape[-1])
        if roles is None:
            return
        yield roles
        yield roles | {"gate": roles["up"], "up": roles["gate"]}
        if "fused" in roles:
            one, two = roles["fused"][..., ::2], roles["fused"][..., 1::2]
            yield roles | {"gate": one, "up": two}
            yield roles | {"gate": two, "up": one}

    def fields(self, side, parameters):
        """How many are chosen, their weights, and what is shared."""
        count = len(parameters["gate"])
        says = side.setting(*CHOSEN)
        routed = side.seen[0].tables.get("routing")
        if not isinstance(says, int) or isinstance(says, bool):
            says = 2 if routed is None else int((routed != 0).sum(-1).max())
        fields = {
            "top-k": list(dict.fromkeys([min(says, count),
                                         *range(1, count + 1)])),
            "experts' weights": ["softmax over the chosen",
                                 "softmax over all experts",
                                 "sigmoid of each",
                                 "sigmoid of each, to sum 1"],
            "chosen": ["the largest"],
            "weights applied": ["to what experts give"],
            "activation": ["silu", *activation.SOUND],
        }
        if parameters.get("shared gate") is not None:
            fields["shared expert"] = ["through its gate", "added"]
            if parameters.get("shared router") is None:
                fields["shared expert"].reverse()
        return fields

    def compute(self, seen, parameters, settings):
        """All of it."""
        return self.mixed(seen, parameters, settings,
                          self.weights(seen, parameters, settings))

    @staticmethod
    def weights(seen, parameters, settings):
        """The weight of every expert for every row, [N E]; 0 if not chosen."""
        logits = rows(seen) @ parameters["router"]
        if NARROW in settings:
            logits = narrow.single(logits)
            if "softmax" in settings["experts' weights"]:  # as it computes
                logits = narrow.single(
                    logits - logits.max(-1, keepdims=True))
        count = logits.shape[-1]
        place = np.argsort(np.argsort(-logits, -1, kind="stable"), -1)
        chosen = ORDERS[settings["chosen"]](place, count, settings["top-k"])
        return WEIGHTS[settings["experts' weights"]](logits, chosen)

    def mixed(self, seen, parameters, settings, weights):
        """What the experts give with these weights, [N E]."""
        function, x = self.functions()[settings["activation"]], rows(seen)

        def network(x, gate, up, down):
            return (function(x @ gate) * (x @ up)) @ down
        y = np.zeros_like(x)
        before = settings["weights applied"] == "to what they are given"
        for each, *kernels in zip(weights.T, *(
                parameters[name] for name in ("gate", "up", "down"))):
            some = each != 0
            part = each[some, None]
            y[some] += (network(part * x[some], *kernels) if before else
                        part * network(x[some], *kernels))
        if settings.get("shared expert") not in (None, "left out"):
            shared = network(x, *(parameters[f"shared {name}"] for name in (
                "gate", "up", "down")))
            if settings["shared expert"] == "through its gate":
                if parameters.get("shared router") is None:
                    raise ValueError
                shared = shared * activation.sigmoid(
                    x @ parameters["shared router"])
            y = y + shared
        return y.reshape(seen.output.shape)

    def narrowed(self, seen, parameters, settings, exact):
        """The same with the weights that were seen, where each of them is the
        exact one but for float32's rounding."""
        weights = self.weights(seen, parameters, settings)
        routed = seen.tables.get("routing")
        near = routed is not None and routed.shape == weights.shape and (
            np.abs(routed - weights) <= 2 * UNITS * UNIT * np.abs(weights))
        if not np.all(near) or not np.array_equal(
                narrow.single(routed), routed):
            return exact
        return self.mixed(seen, parameters, settings, routed)

    def relation(self, name, mine, other):
        """Experts in another order are told once, of all their kernels."""
        if name == "fused" or name in ("gate", "up", "down") and (
                order_of(mine, other)):
            return "", ""
        return None

    def also(self, first, second, sides):
        """Experts, or one kernel of each, that stand in another order."""
        by_order = {}
        for name in ("gate", "up", "down"):
            order = order_of(first.parameters[name], second.parameters[name])
            if order:
                by_order.setdefault(tuple(order), []).append(name)
        for order, names in by_order.items():
            words = f"of a's experts {', '.join(map(str, order))}"
            yield Change(
                "experts" if len(names) == 3 else
                f"experts' {' and '.join(names)}", "as they are", words,
                EXCHANGED, second.settings, second.parameters | {
                    name: first.parameters[name] for name in names})


class Router(Experts):
    """What a router gives: the weights of the chosen experts, [N k]."""

    name = "router of experts"

    def readings(self, side):
        """A router [D E]."""
        seen = side.seen[0]
        arrays = [array for array in side.parameters.values()
                  if array.ndim == 2]
        if len(arrays) != 1 or len(side.parameters) > 1 or not seen.floats or (
                seen.output.ndim != 2 or (seen.output < 0).any()):
            return
        for router in (arrays[0].T, arrays[0]):
            if (len(router) == seen.x.shape[-1]
                    and seen.output.shape[1] < router.shape[1]):
                yield {"router": router}

    def fields(self, side, parameters):
        """The weights, and which are chosen."""
        fields = super().fields(side, {"gate": parameters["router"].T})
        return {name: fields[name] for name in (
            "experts' weights", "chosen")} | {
                "top-k": [side.seen[0].output.shape[1]]}

    def compute(self, seen, parameters, settings):
        """The weights, the largest first; of logits in float32, if the weights
        seen are."""
        if np.array_equal(narrow.single(seen.output), seen.output):
            settings = settings | {NARROW: ROUTING}
        weights = self.weights(seen, parameters, settings)
        order = np.argsort(-(rows(seen) @ parameters["router"]), -1,
                           kind="stable")
        order = np.take_along_axis(weights, order, -1)
        chosen = np.take_along_axis(order, np.argsort(
            order == 0, -1, kind="stable"), -1)
        return chosen[:, :settings["top-k"]]

    def narrowed(self, seen, parameters, settings, exact):
        """What was seen, where that is the exact number but for rounding."""
        near = np.abs(seen.output - exact) <= 2 * UNITS * UNIT * np.abs(exact)
        return seen.output if near.all() and np.array_equal(
            narrow.single(seen.output), seen.output) else exact

    relation, also = Family.relation, Family.also


#: The catalogue's word of experts that stand in another order.
EXCHANGED = "in another order"


def order_of(mine, other):
    """Which of a's experts stands at each of b's places; None if they are not
    the same ones, or in the same order."""
    if mine.shape != other.shape or np.array_equal(mine, other):
        return None
    order = [next((place for place, one in enumerate(mine)
                   if np.array_equal(one, each)), None) for each in other]
    return None if None in order or len({*order}) < len(order) else order


def rows(seen):
    """The input as [N D]."""
    return seen.x.reshape(-1, seen.x.shape[-1])


def arrays_of(side, width):
    """{role: array} of a block's parameters; None where they are no block's.

    Args:
        side: a Side.
        width: D.
    """
    roles: dict = {}
    for path, array in side.parameters.items():
        place = is_float(array) and placed(
            path, array, width, side.framework == "torch")
        if not place:
            return None
        key, number, array = place
        if number is not None:
            roles.setdefault(key, {})[number] = array
        elif key in roles:
            return None
        elif key:
            roles[key] = array
    for name, each in roles.items():
        if isinstance(each, dict):
            if len({array.shape for array in each.values()}) > 1:
                return None
            roles[name] = np.stack([each[i] for i in sorted(each)])
    if "fused" in roles:
        roles["gate"], roles["up"] = np.split(roles["fused"], 2, -1)
    return roles if is_block(roles, width) else None


def placed(path, array, width, turn):
    """(role, which expert's or None, array as [in, out]) of a parameter.

    The role of a bias of zeros is "". None of what no block has.
    """
    *above, last = path.split(".")
    if last in ("weight", "kernel", "w") and above:
        last = above.pop()
    name = next((part for part, words in PARTS.items() if last in words),
                "fused" if last in FUSED else None)
    if array.ndim == 2:
        found = placed_matrix(name, above, last, array, (
            turn, turn and array.shape[-1] == width))
    else:
        found = (name, None, outward(name, array, width, turn)) if (
            name and array.ndim == 3) else None
    return found or (("", None, array) if last.endswith("bias") and not (
        array.any()) else None)


def placed_matrix(name, above, last, array, turns):
    """The same of a router, of a shared expert, or of one in a list."""
    turned, router_turned = turns
    shared = any("shared" in word for word in (*above, last))
    if name is None and ROUTERS & {*words_of(last)[0], last}:
        return "shared router" if shared else "router", None, (
            array.T if router_turned else array)
    kernel = array.T if turned else array
    if name and shared:
        return f"shared {name}", None, kernel
    return (name, int(above[-1]), kernel) if (
        name and above and above[-1].isdigit()) else None


def outward(name, array, width, turn):
    """Kernels of all experts as [E in out], D being the outer width."""
    square = array.shape[-1] == array.shape[-2]
    is_so = array.shape[-1 if name == "down" else -2] == width
    return array if is_so and not (turn and square) else (
        array.swapaxes(-1, -2))


def is_block(roles, width):
    """Whether a router and all experts' kernels are there and fit together."""
    router, gate, up, down = (roles.get(name) for name in (
        "router", "gate", "up", "down"))
    if router is None or any(each is None or each.ndim != 3
                             for each in (gate, up, down)):
        return False
    count, _, inner = gate.shape
    return (router.shape == (width, count) and gate.shape == up.shape
            and down.shape == (count, inner, width))


def routing_seen(trace, step, x):
    """The weight of every expert for every row that steps inside hand on.

    Args:
        trace, step: where a block is.
        x: its input.

    Returns:
        [N E], or None where no weights and numbers of experts are seen.
    """
    count = x.size // x.shape[-1]
    for inner in trace.steps:
        if not (step.began < inner.began and inner.ended < step.ended):
            continue
        arrays = [array.reshape(count, -1) for array in (
            *inner.outputs.values(), *inner.inputs.values())
            if array.ndim > 1 and array.size and not array.size % count]
        for places in arrays:
            if places.dtype.kind not in "iu" or places.min() < 0:
                continue
            for held in arrays:
                logits = next((a for a in arrays if is_float(a)
                               and a.shape[1] > places.max()
                               and a.shape[1] >= places.shape[1]), None)
                if (logits is not None and is_float(held)
                        and held is not logits
                        and held.shape == places.shape):
                    routed = np.zeros(logits.shape)
                    np.put_along_axis(routed, places, held.astype(
                        np.float64), -1)
                    return routed
    return None
