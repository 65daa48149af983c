"""A Llama in NumPy, as an engine has it: other names, and no modules.

The truth is transformers' own, traced live. The engine takes its weights, and
dumps what it computes in any of several programs' ways.
"""

import dataclasses
import functools

import numpy as np

#: Sizes: tokens, width, heads, key heads, inner width, words, layers.
T, D, H, G, F, V, L = 9, 32, 4, 2, 48, 50, 2


@functools.cache
def truth():
    """(the Trace of transformers' Llama in float32, its weights, the ids)."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from parity.tracing.trace import trace
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=V, hidden_size=D, intermediate_size=F, num_hidden_layers=L,
        num_attention_heads=H, num_key_value_heads=G)).eval()
    with torch.no_grad():
        for name, each in model.named_parameters():
            torch.nn.init.normal_(each, std=0.3)
            if "norm" in name:
                each += 1
    ids = torch.tensor(np.random.default_rng(0).integers(3, V, (1, T)))
    with torch.no_grad():
        made = trace(model, input_ids=ids, use_cache=False)
    return made, {name: each.detach().numpy() for name, each
                  in model.state_dict().items()}, ids.numpy()


@dataclasses.dataclass(frozen=True)
class LlamaEngine:
    """One way of computing; the defaults are right.

    Attributes: what may be wrong, by its name.
    """

    eps: float = 1e-6
    theta: float = 10000.0
    neighbours: bool = False
    scaled: bool = True
    causal: bool = True
    tiled: bool = False
    residual: bool = True
    activation: str = "silu"
    swapped: bool = False
    normed: bool = True
    embed_scale: float = 1.0
    layer: int = 1
    dtype: type = np.float32

    def __call__(self, last=False):
        """{name: array} of what is computed, in order, by llama.cpp's names.

        Args:
            last: whether the last layer goes on with the last token alone.
        """
        _, weights, ids = truth()
        made = {"inputs/input_ids": ids}

        def put(name, array):
            made[name] = array.astype(self.dtype)
            return array
        x = put("embd", self.embed_scale * weights[
            "model.embed_tokens.weight"][ids[0]].astype(np.float64))
        for layer in range(L):
            source = min(layer, self.layer)
            w = {name.rpartition(f"layers.{source}.")[2]: each
                 for name, each in weights.items()
                 if f"layers.{source}." in name}
            wrong = layer == L - 1
            x = self._layer(x, w, layer, put, wrong, last and wrong)
        if self.normed:
            x = put("result_norm", self._norm(
                x, weights["model.norm.weight"]))
        made["outputs/logits"] = (x @ weights["lm_head.weight"].T).astype(
            self.dtype)
        return made

    def _norm(self, x, scale, eps=1e-6):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * scale

    def _layer(self, x, w, i, put, wrong, last):
        """One layer; what is wrong is wrong in the last of them."""
        normed = put(f"attn_norm-{i}", self._norm(
            x, w["input_layernorm.weight"], self.eps if wrong else 1e-6))
        q, k, v = (put(f"{name}cur-{i}", normed @ w[
            f"self_attn.{name.lower()}_proj.weight"].T) for name in "QKV")
        q, k = (self._turned(each.reshape(T, heads, -1), wrong)
                for each, heads in ((q, H), (k, G)))
        v = v.reshape(T, G, -1)
        k, v = (np.tile(each, (1, H // G, 1)) if self.tiled and wrong
                else each.repeat(H // G, 1) for each in (k, v))
        scores = np.einsum("thk,shk->hts", q, k)
        if self.scaled or not wrong:
            scores = scores / np.sqrt(D // H)
        if self.causal or not wrong:
            scores = np.where(np.tri(T, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = np.einsum("hts,shk->thk", weights, v).reshape(T, -1)
        if last:
            mixed, x = mixed[-1:], x[-1:]
        mixed = put(f"attn_out-{i}", mixed @ w["self_attn.o_proj.weight"].T)
        x = put(f"ffn_inp-{i}", x + mixed)
        normed = put(f"ffn_norm-{i}", self._norm(
            x, w["post_attention_layernorm.weight"]))
        names = ["gate", "up"]
        gate, up = (put(f"ffn_{name}-{i}", normed @ w[
            f"mlp.{name}_proj.weight"].T) for name in names)
        if self.swapped and wrong:
            gate, up = up, gate
        act = gate / (1 + np.exp(-(1.702 if self.activation == "quick"
                                   and wrong else 1) * gate))
        out = put(f"ffn_out-{i}", (act * up) @ w["mlp.down_proj.weight"].T)
        return put(f"l_out-{i}", out if wrong and not self.residual
                   else x + out)

    def _turned(self, x, wrong):
        """Rotary positions: Su et al. (2021), by halves."""
        half = x.shape[-1] // 2
        theta = self.theta if wrong else 10000.0
        angle = np.arange(T)[:, None] * theta ** (-np.arange(half) / half)
        cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
        if self.neighbours and wrong:
            one, two = x[..., ::2], x[..., 1::2]
            return np.stack([one * cos - two * sin, two * cos + one * sin],
                            -1).reshape(x.shape)
        one, two = x[..., :half], x[..., half:]
        return np.concatenate([one * cos - two * sin, two * cos + one * sin],
                              -1)
