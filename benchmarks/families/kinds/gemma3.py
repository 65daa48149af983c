"""Gemma 3, text: two kinds of layers, each with its own rotary base."""

from benchmarks.families.fault import MASK, ROTARY, SCALE, either, number
from benchmarks.families.hugging import DECODER, Original, unpadded

GEMMA3 = Original("gemma3", "gemma3", "Gemma3ForCausalLM", (
    "Gemma3TextConfig", DECODER | {
        "sliding_window": 4, "query_pre_attn_scalar": 9,
        "layer_types": ["sliding_attention", "full_attention"],
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            "full_attention": {"rope_type": "linear", "rope_theta": 1e6,
                               "factor": 8.0}}}), unpadded)


def pairs():
    """All of them."""
    of = GEMMA3.fault
    return [
        GEMMA3.sound(),
        GEMMA3.fault("sound: queries scaled before keys", (), (
            "attn_weights = torch.matmul(query, key_states.transpose(2, 3)) "
            "* scaling",
            "attn_weights = torch.matmul(query * scaling, "
            "key_states.transpose(2, 3))")),
        of("norm without 1 +", (r"\b1\b|less 1|plus",), (
            "output = output * (1.0 + self.weight.float())",
            "output = output * self.weight.float()")),
        of("embedding not scaled", (
            either(SCALE, "embed"), r"4\.8\d*|√|scale|factor|sqrt§\*"), (
            "return super().forward(input_ids) * self.embed_scale.to("
            "self.weight.dtype)",
            "return super().forward(input_ids)")),
        of("one table for all layers", (
            ROTARY + "|table", r"sliding|ratio|base|θ|" + number(1e4)), (
            'inv_freq = getattr(self, f"{layer_type}_inv_freq")',
            'inv_freq = getattr(self, "sliding_attention_inv_freq")')),
        of("linear scaling of places forgotten", (
            ROTARY + "|linear|scal", number(8, 1 / 8) + "|linear"), (
            "freqs = position_ids[..., None].float() * inv_freq",
            "freqs = position_ids[..., None].float() * 8 * inv_freq")),
        of("layers' positions exchanged", (
            r"@exchang|swap|" + ROTARY + "|" + number(1e4),), (
            "position_embeddings=position_embeddings[self.config.layer_types"
            "[i]],",
            "position_embeddings=position_embeddings[self.config.layer_types"
            "[i - 1]],")),
        of("every layer sees all", (MASK, r"window|\b4\b"), (
            "attention_mask=causal_mask_mapping[self.config.layer_types[i]],",
            'attention_mask=causal_mask_mapping["full_attention"],')),
        of("norm behind attention forgotten", ("norm",), (
            "        hidden_states = self.post_attention_layernorm("
            "hidden_states)\n",
            "        hidden_states = hidden_states\n",
            "class Gemma3DecoderLayer")),
        of("scaled by √head", (SCALE, number(6**-0.5, 9**-0.5, 3, 6**0.5)
                               + "|√d_k"), (
            "self.scaling = config.query_pre_attn_scalar**-0.5",
            "self.scaling = self.head_dim**-0.5")),
        of("gelu by erf", ("gelu|tanh", "erf|tanh|exact|approx"), (
            "self.act_fn = ACT2FN[config.hidden_activation]",
            'self.act_fn = ACT2FN["gelu"]', "class Gemma3MLP")),
        of("norms of queries and keys forgotten", ("norm|rms",), (
            "        query_states = self.q_norm(query_states)\n"
            "        key_states = self.k_norm(key_states)",
            "        pass")),
    ]
