"""A tagger with recurrent layers."""

from benchmarks.families.fault import BIAS
from benchmarks.families.hugging import OurPort, OwnOriginal, unpadded

CONFIG = {"width": 6}


def words():
    """ids alone."""
    return {"ids": unpadded()["input_ids"]}


TAGGER = OwnOriginal("tagger", "tagger_torch", "Model", CONFIG, words)
CELLS = OurPort("tagger", "tagger_cells_torch", TAGGER.plain,
                lambda: words().values(), CONFIG, "torch")
KERAS = OurPort("tagger", "tagger_keras", TAGGER.plain,
                lambda: words().values(), CONFIG, "keras")

GATES = r"gates?\b|order|exchang|swap|forget|reset|update§chunk|split|\["


def cells():
    """Faults in a port to cells in torch, beside torch's own layers."""
    of = CELLS.fault
    yield of("gates input and forget exchanged", (GATES,), (
        "i, f, g, o = gates", "f, i, g, o = gates"))
    yield of("gates in Keras' old order", (GATES,), (
        "i, f, g, o = gates", "i, g, f, o = gates"))
    yield of("the second bias forgotten", (BIAS,), (
        "gates = gates + h @ self.weight_hh.T + self.bias_hh",
        "gates = gates + h @ self.weight_hh.T"))
    yield of("no tanh of the cell", (r"tanh|activation",), (
        "h = torch.sigmoid(o) * torch.tanh(c)", "h = torch.sigmoid(o) * c"))
    yield of("the way back not turned again", (
        r"flip|revers|order|direction|backward",), (
        "return y.flip(1) if self.back else y", "return y"))
    yield of("reset before the product", (
        r"reset|order|before|after|product§@|matmul|mm",), (
        "new = torch.tanh(n + reset * n2)",
        "new = torch.tanh(n + (reset * h) @ self.weight_hh[\n"
        "                2 * self.width:].T + self.bias_hh[2 * self.width:])"
    ))
    yield of("update the other way", (
        r"update|1 ?[-−]|exchang|swap|gate§1 -|rsub",), (
        "h = (1 - update) * new + update * h",
        "h = update * new + (1 - update) * h"))
    yield of("update and reset exchanged", (GATES,), (
        "reset, update = torch.sigmoid(r + r2), torch.sigmoid(z + z2)",
        "reset, update = torch.sigmoid(z + z2), torch.sigmoid(r + r2)"))
    yield of("forget gate plus 1", (r"forget|\b1\b|bias",), (
        "c = torch.sigmoid(f) * c", "c = torch.sigmoid(f + 1) * c"))
    yield of("the first state, not the last", (
        r"first|last|\[|select|slice|place",), (
        "y[:, -1]", "y[:, 0]"))


def keras():
    """Faults in a port to Keras."""
    of = KERAS.fault
    yield of("reset behind the product is off", (
        r"reset_after|reset|order|before|after|product",), (
        "layers.GRU(width, return_sequences=True, **KIND)",
        "layers.GRU(width, return_sequences=True, reset_after=False, **KIND)"
    ), ("model.gru.set_weights([one.T, two.T, np.stack([three, four])])",
        "model.gru.set_weights([one.T, two.T, three + four])"))
    yield of("GRU's gates as torch has them", (GATES,), (
        '_l0"], 1, 0, 2)', '_l0"], 0, 1, 2)'), at="gru")
    yield of("LSTM's second bias forgotten", (r"bias",), (
        'arrays[f"lstm.bias_ih_{end}"] + arrays[f"lstm.bias_hh_{end}"]])',
        'arrays[f"lstm.bias_ih_{end}"]])'), at="forth|back")
    yield of("backwards not turned again", (
        r"flip|revers|order|direction|backward",), (
        "ops.flip(self.back(x), axis=1)", "self.back(x)"))
    yield of("hard sigmoid", (r"hard|sigmoid|activation|clip|relu6",), (
        "self.forth = layers.LSTM(width, return_sequences=True, **KIND)",
        "self.forth = layers.LSTM(width, return_sequences=True,\n"
        "            recurrent_activation=\"hard_sigmoid\", **KIND)"))
    yield of("both ways exchanged", (
        r"exchang|swap|order|concat|halves",), (
        "[self.forth(x), ops.flip(self.back(x), axis=1)], -1",
        "[ops.flip(self.back(x), axis=1), self.forth(x)], -1"))
    yield of("relu, not tanh", (r"relu|tanh|activation|max",), (
        "self.gru = layers.GRU(width, return_sequences=True, **KIND)",
        "self.gru = layers.GRU(width, activation=\"relu\",\n"
        "                              return_sequences=True, **KIND)"),
        within=True)


def pairs():
    """All of them."""
    return [TAGGER.sound(), CELLS.sound(), KERAS.sound(), *cells(), *keras()]
