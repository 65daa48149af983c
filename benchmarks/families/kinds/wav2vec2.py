"""wav2vec 2.0: convolutions over samples, group and weight norms."""

import numpy as np

from benchmarks.families.fault import RESIDUAL, SCALE, number
from benchmarks.families.hugging import Original


def sound():
    """Samples of two sounds."""
    return {"input_values": np.random.default_rng(6).normal(size=(2, 160))}


WAV = Original("wav2vec2", "wav2vec2", "Wav2Vec2Model", ("Wav2Vec2Config", {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 24, "conv_dim": [8, 8], "conv_kernel": [10, 3],
    "conv_stride": [5, 2], "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2,
    "vocab_size": 12, "layerdrop": 0.0, "apply_spec_augment": False}), sound)

GROUPS = r"group|norm"


def pairs():
    """All of them."""
    of = WAV.fault
    return [
        WAV.sound(),
        WAV.fault("sound: defaults written out", (), (
            "            padding=config.num_conv_pos_embeddings // 2,\n"
            "            groups=config.num_conv_pos_embedding_groups,",
            "            padding=config.num_conv_pos_embeddings // 2,\n"
            "            dilation=1, padding_mode=\"zeros\",\n"
            "            groups=config.num_conv_pos_embedding_groups,")),
        of("one group", (GROUPS, r"\b1\b|ax[ie]s|groups?"), (
            "nn.GroupNorm(num_groups=self.out_conv_dim,",
            "nn.GroupNorm(num_groups=1,")),
        of("weight norm over another axis", (
            r"weight norm|norm|ax[ie]s|dim|different",), (
            "        hidden_states = self.conv(hidden_states)\n"
            "        hidden_states = self.padding(hidden_states)",
            "        weight = self.conv.parametrizations.weight\n"
            "        kernel = weight.original0 * weight.original1 / (\n"
            "            weight.original1.norm(dim=(1, 2), keepdim=True))\n"
            "        hidden_states = nn.functional.conv1d(\n"
            "            hidden_states, kernel, self.conv.bias, 1,\n"
            "            self.conv.padding, 1, self.conv.groups)\n"
            "        hidden_states = self.padding(hidden_states)")),
        of("the first place cut, not the last", (
            r"pad|shift|first|last|slice|\[|roll",), (
            "hidden_states = hidden_states[:, :, : -self.num_pad_remove]",
            "hidden_states = hidden_states[:, :, self.num_pad_remove :]")),
        of("positions without gelu", (r"gelu|activation|erf",), (
            "        hidden_states = self.padding(hidden_states)\n"
            "        hidden_states = self.activation(hidden_states)",
            "        hidden_states = self.padding(hidden_states)\n"
            "        hidden_states = hidden_states")),
        of("positions not added", (
            r"position|summand|added|unused§\+",), (
            "hidden_states = hidden_states + position_embeddings.to("
            "hidden_states.device)", "hidden_states = hidden_states")),
        of("norm before positions", (
            r"@norm|before|order|place|input",), (
            "        position_embeddings = self.pos_conv_embed(hidden_states)"
            "\n        hidden_states = hidden_states + position_embeddings.to("
            "hidden_states.device)\n        hidden_states = self.layer_norm("
            "hidden_states)",
            "        hidden_states = self.layer_norm(hidden_states)\n"
            "        hidden_states = hidden_states + self.pos_conv_embed("
            "hidden_states)")),
        of("pre-norm", (r"@norm|before|pre-norm|order|place|input",), (
            "        hidden_states = self.layer_norm(hidden_states)\n"
            "        hidden_states = hidden_states + self.feed_forward("
            "hidden_states)\n        hidden_states = self.final_layer_norm("
            "hidden_states)",
            "        hidden_states = hidden_states + self.feed_forward("
            "self.layer_norm(hidden_states))\n"
            "        hidden_states = self.final_layer_norm(hidden_states)")),
        of("projection's norm forgotten", ("norm",), (
            "hidden_states = self.projection(norm_hidden_states)",
            "hidden_states = self.projection(hidden_states)")),
        of("norm ε 1e-6", (number(1e-5), number(1e-6)), (
            "self.layer_norm = nn.LayerNorm(config.conv_dim[-1], "
            "eps=config.layer_norm_eps)",
            "self.layer_norm = nn.LayerNorm(config.conv_dim[-1], eps=1e-6)")),
        of("activation before the group norm", (
            r"@norm|activation|gelu|order|before|after",), (
            "        hidden_states = self.layer_norm(hidden_states)\n"
            "        hidden_states = self.activation(hidden_states)",
            "        hidden_states = self.activation(hidden_states)\n"
            "        hidden_states = self.layer_norm(hidden_states)",
            "class Wav2Vec2GroupNormConvLayer")),
        of("second residual forgotten", (RESIDUAL,), (
            "hidden_states = hidden_states + self.feed_forward(hidden_states)"
            "\n        hidden_states = self.final",
            "hidden_states = self.feed_forward(hidden_states)"
            "\n        hidden_states = self.final")),
        of("scores scaled by √width", (SCALE, number(16**-0.5, 4, 0.5)
                                       + "|√"), (
            "self.scaling = self.head_dim**-0.5",
            "self.scaling = self.embed_dim**-0.5")),
    ]
