"""ESM 2, an encoder of proteins."""

from benchmarks.families.fault import (
    MASK, RESIDUAL, ROTARY, SCALE, either, number)
from benchmarks.families.hugging import ENCODER, Original, OurPort, tokens

CONFIG = ENCODER | {
    "position_embedding_type": "rotary", "token_dropout": True,
    "mask_token_id": 3, "layer_norm_eps": 1e-5, "hidden_size": 24,
    "emb_layer_norm_before": False}


def masked():
    """ids with masked tokens, and a mask."""
    given = tokens()
    given["input_ids"][0, 2:4] = 3
    given["input_ids"][1, 1] = 3
    return given


ESM = Original("esm", "esm", "EsmForMaskedLM", ("EsmConfig", CONFIG), masked)
BODY = Original("esm", "esm", "EsmModel", ("EsmConfig", CONFIG), masked,
                extra=(("add_pooling_layer", False),))
NNX = OurPort("esm", "esm_nnx", BODY.plain, lambda: masked().values(), CONFIG)


def copies():
    """Faults in copies of the library's own file."""
    of = ESM.fault
    yield of("share of masked tokens forgotten", (
        SCALE, r"mask|share|ratio|0\.88|1\.\d\d|factor"), (
        "embeddings = (embeddings * (1 - mask_ratio_train) / "
        "(1 - mask_ratio_observed)[:, None, None])",
        "embeddings = (embeddings * 1.0)"))
    yield of("masked tokens not zero", (r"mask|zero|where|fill",), (
        "embeddings = embeddings.masked_fill((input_ids == "
        "self.mask_token_id).unsqueeze(-1), 0.0)",
        "embeddings = embeddings"))
    yield of("padding not zero", (either(MASK, "zero§\\*"),), (
        "embeddings = (embeddings * attention_mask.unsqueeze(-1))",
        "embeddings = (embeddings * 1.0)"))
    yield of("scaled by √width", (SCALE, number(24**-0.5, 24**0.5)
                                  + "|√d_model"), (
        "query_layer = query_layer * self.attention_head_size**-0.5",
        "query_layer = query_layer * self.all_head_size**-0.5"))
    yield of("values turned too", (ROTARY, r"@value"), (
        "            query_layer, key_layer = apply_rotary_pos_emb(query_layer,"
        " key_layer, cos, sin, unsqueeze_dim=1)",
        "            value_layer, _ = apply_rotary_pos_emb(value_layer, "
        "value_layer, cos, sin)\n"
        "            query_layer, key_layer = apply_rotary_pos_emb("
        "query_layer, key_layer, cos, sin, unsqueeze_dim=1)"))
    yield of("no norm at the end", ("norm",), (
        "hidden_states = self.emb_layer_norm_after(hidden_states)",
        "hidden_states = hidden_states"))


def ports():
    """Faults in a port to nnx."""
    of = NNX.fault
    yield of("share of all tokens", (
        r"mask|share|ratio|mean|count|\b[79]\b|sum§mean",), (
        "share = hidden.sum(-1) / mask.sum(-1)",
        "share = hidden.mean(-1)"))
    yield of("masked in training 0.15", (number(0.12, 0.88), number(
        0.15, 0.85)), ("(1 - 0.15 * 0.8)", "(1 - 0.15)"))
    yield of("ε 1e-12", (number(1e-5), number(1e-12)), (
        "epsilon=1e-5", "epsilon=1e-12"))
    yield of("gelu by tanh", ("gelu|tanh", "tanh|erf|approx"), (
        "approximate=False", "approximate=True"))
    yield of("keys not turned", (ROTARY, "key|@key"), (
        "q @ rotate(k).swapaxes", "q @ k.swapaxes"))
    yield of("θ 1e3", (number(1e4), number(1e3)), ("10000.0 **", "1000.0 **"))
    yield of("scale twice", (SCALE,), (
        "scores = jnp.where(kept, q @ rotate(k).swapaxes(-1, -2), -1e30)",
        "scores = q @ rotate(k).swapaxes(-1, -2) * q.shape[-1] ** -0.5\n"
        "        scores = jnp.where(kept, scores, -1e30)"))
    yield of("padding seen", (MASK,), (
        "kept = mask[:, None, None] > 0", "kept = mask[:, None, None] >= 0"),
        at="attention")
    yield of("residual from the norm", (either(RESIDUAL, "input"), "@norm"), (
        "        y = jax.nn.gelu(self.fc1(self.norm2(x)), approximate=False)",
        "        x = self.norm2(x)\n"
        "        y = jax.nn.gelu(self.fc1(x), approximate=False)"),
        within=True)
    yield of("sin of the other sign", ("sign|negat|direction§-|neg|sub|\\+",),
             ("[one * cos - two * sin, two * cos + one * sin]",
              "[one * cos + two * sin, two * cos - one * sin]"), within=True)


def pairs():
    """All of them."""
    return [ESM.sound(), NNX.sound(), *copies(), *ports()]
