"""DINOv2, with a head over its class token and the mean of its patches."""

import numpy as np

from benchmarks.families.fault import (
    BIAS, ORDER, RESIDUAL, SCALE, SOFTMAX, number)
from benchmarks.families.hugging import Original, OurPort, image

CONFIG = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
          "image_size": 12, "patch_size": 4, "num_labels": 5,
          "layerscale_value": 0.5}
PIXELS = image(2, 3, 12, 12)
DINO = Original("dinov2", "dinov2", "Dinov2ForImageClassification", (
    "Dinov2Config", CONFIG), PIXELS)
KERAS = OurPort("dinov2", "dinov2_keras", DINO.plain, lambda: [np.moveaxis(
    PIXELS()["pixel_values"], 1, -1)], CONFIG, "keras")

LAYER_SCALE = r"@layer_scale|scale1|factor|times§\*"


def copies():
    """Faults in copies of the library's own file."""
    of = DINO.fault
    yield of("layer scale forgotten", (LAYER_SCALE,), (
        "return hidden_state * self.lambda1", "return hidden_state"))
    yield of("layer scale before the norm", (
        LAYER_SCALE, r"norm|place|order|before|input"), (
        "        hidden_states = self.norm2(hidden_states)\n"
        "        hidden_states = self.mlp(hidden_states)\n"
        "        hidden_states = self.layer_scale2(hidden_states)",
        "        hidden_states = self.layer_scale2(hidden_states)\n"
        "        hidden_states = self.norm2(hidden_states)\n"
        "        hidden_states = self.mlp(hidden_states)"))
    yield of("softmax over queries", (SOFTMAX + "§-1|-2|dim|ax[ie]s",), (
        "softmax(attn_weights, dim=-1)", "softmax(attn_weights, dim=-2)"))
    yield of("class token behind", (r"order|concat|first|last|roll|place",), (
        "torch.cat((cls_tokens, embeddings), dim=1)",
        "torch.cat((embeddings, cls_tokens), dim=1)"))
    yield of("positions on patches alone", (
        r"position|summand|added|class|first§\+",), (
        "embeddings = embeddings + self.interpolate_pos_encoding(embeddings, "
        "height, width)",
        "places = self.interpolate_pos_encoding(embeddings, height, width)\n"
        "            embeddings = torch.cat((embeddings[:, :1], "
        "embeddings[:, 1:] + places[:, 1:]), dim=1)"))
    yield of("mean over the class token too", (
        r"mean|pool|average", r"first|class|\b1\b|slice|count|9|10"), (
        "patch_tokens = sequence_output[:, 1:]",
        "patch_tokens = sequence_output[:, 0:]"))


def ports():
    """Faults in a port to Keras."""
    of = KERAS.fault
    yield of("Keras' default ε", (number(1e-6), number(1e-3)), (
        "layers.LayerNormalization(epsilon=1e-6, **KIND)",
        "layers.LayerNormalization(**KIND)"))
    yield of("gelu by tanh", ("gelu|tanh", "tanh|erf|approx"), (
        "approximate=False", "approximate=True"))
    yield of("heads behind features", (ORDER,), (
        "y = ops.reshape(y, (*x.shape[:2], self.heads, -1))\n"
        "            return ops.transpose(y, (0, 2, 1, 3))",
        "y = ops.reshape(y, (*x.shape[:2], -1, self.heads))\n"
        "            return ops.transpose(y, (0, 3, 1, 2))"))
    yield of("patches by columns", (ORDER,), (
        "        x = ops.reshape(x, (x.shape[0], -1, x.shape[-1]))",
        "        x = ops.transpose(x, (0, 2, 1, 3))\n"
        "        x = ops.reshape(x, (x.shape[0], -1, x.shape[-1]))"))
    yield of("scaled by √width", (SCALE,), (
        "q.shape[-1] ** -0.5", "x.shape[-1] ** -0.5"))
    yield of("layer scale forgotten", (LAYER_SCALE,), (
        "x = x + self.scale1 * self", "x = x + self"))
    yield of("class token and mean exchanged", (
        r"order|exchang|swap|concat|halves",), (
        "[x[:, 0], mean], axis=-1", "[mean, x[:, 0]], axis=-1"))
    yield of("no positions", (r"position|summand|added|places§\+",), (
        "axis=1) + self.places", "axis=1)"))
    yield of("second norm's residual", (RESIDUAL,), (
        "return x + self.scale2 * y", "return self.norm2(x) + self.scale2 * y"
    ), within=True)
    yield of("output projection's bias", (BIAS,), (
        "self.o_proj = layers.Dense(width, **KIND)",
        "self.o_proj = layers.Dense(width, use_bias=False, **KIND)"),
        within=True)


def pairs():
    """All of them."""
    return [DINO.sound(), KERAS.sound(), *copies(), *ports()]
