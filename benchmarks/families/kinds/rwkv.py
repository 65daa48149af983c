"""RWKV, with its linear attention by decay."""

from benchmarks.families.fault import RESIDUAL, either
from benchmarks.families.hugging import Original, unpadded

RWKV = Original("rwkv", "rwkv", "RwkvModel", ("RwkvConfig", {
    "hidden_size": 16, "num_hidden_layers": 2, "vocab_size": 29,
    "context_length": 16, "use_cache": False, "rescale_every": 0}), unpadded)

DECAY = r"decay|\bexp\b§exp|abs"


def pairs():
    """All of them."""
    of = RWKV.fault
    return [
        RWKV.sound(),
        RWKV.fault("sound: (1 - m) shifted first", (), (
            "key = hidden * self.time_mix_key + shifted * (1 - "
            "self.time_mix_key)\n        value",
            "key = shifted + self.time_mix_key * (hidden - shifted)\n"
            "        value")),
        of("decay without exp", (DECAY,), (
            "time_decay = -torch.exp(time_decay)\n\n    for",
            "time_decay = -time_decay.abs()\n\n    for")),
        of("the present place without its bonus", (
            r"@time_first|bonus|summand|added|unused§\+",), (
            "e2 = torch.exp(current_key + time_first - max_for_output)",
            "e2 = torch.exp(current_key - max_for_output)")),
        of("mix the wrong way round", (
            r"@time_mix_key|exchang|swap|1 ?[-−]",), (
            "key = hidden * self.time_mix_key + shifted * (1 - "
            "self.time_mix_key)\n        value",
            "key = shifted * self.time_mix_key + hidden * (1 - "
            "self.time_mix_key)\n        value")),
        of("shift to the other side", (r"shift|pad|roll|next|previous",), (
            "self.time_shift = nn.ZeroPad2d((0, 0, 1, -1))\n        self.key",
            "self.time_shift = nn.ZeroPad2d((0, 0, -1, 1))\n        self.key"
        )),
        of("relu not squared", (r"square|pow|²|activation§square|pow|\*",), (
            "key = torch.square(torch.relu(self.key(key)))",
            "key = torch.relu(self.key(key))")),
        of("receptance without sigmoid", (r"sigmoid|activation|logistic",), (
            "receptance = torch.sigmoid(self.receptance(receptance))\n"
            "        if state is not None:\n            state[1]",
            "receptance = self.receptance(receptance)\n"
            "        if state is not None:\n            state[1]")),
        of("no norm before the first block", (r"@norm|pre_ln",), (
            "hidden = self.pre_ln(hidden)", "hidden = hidden")),
        of("second residual from the norm", (either(RESIDUAL, "input|norm"),), (
            "feed_forward, state = self.feed_forward(self.ln2(hidden), "
            "state=state)",
            "hidden = self.ln2(hidden)\n        feed_forward, state = "
            "self.feed_forward(hidden, state=state)")),
        of("output times the wrong gate", (
            r"gate|product|times|summand|sum§\+|\*",), (
            "return self.output(receptance * rwkv), state",
            "return self.output(receptance + rwkv), state")),
    ]
