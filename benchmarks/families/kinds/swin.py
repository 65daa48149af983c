"""Swin: windows, shifted ones, and biases by relative position."""

from benchmarks.families.fault import MASK, ORDER, RESIDUAL, SCALE, either
from benchmarks.families.hugging import Original, image

SWIN = Original("swin", "swin", "SwinModel", ("SwinConfig", {
    "image_size": 16, "patch_size": 2, "num_channels": 3, "embed_dim": 8,
    "depths": [2, 1], "num_heads": [2, 4], "window_size": 4,
    "layer_norm_eps": 1e-5}), image(2, 3, 16, 16))

ROLL = r"roll|shift|cyclic|order"


def pairs():
    """All of them."""
    of = SWIN.fault
    return [
        SWIN.sound(),
        SWIN.fault("sound: rolled by slices", (), (
            "            hidden_states = torch.roll(\n"
            "                hidden_states,\n"
            "                shifts=(direction * self.shift_size, direction "
            "* self.shift_size),\n"
            "                dims=(1, 2),\n            )",
            "            by = direction * self.shift_size\n"
            "            for axis in (1, 2):\n"
            "                size = hidden_states.shape[axis]\n"
            "                places = (torch.arange(size) - by) % size\n"
            "                hidden_states = hidden_states.index_select("
            "axis, places)")),
        of("rolled the other way", (ROLL,), (
            "direction = 1 if reverse else -1",
            "direction = -1 if reverse else 1")),
        of("not rolled back", (ROLL,), (
            "        if self.shift_size > 0:\n            direction",
            "        if self.shift_size > 0 and not reverse:\n"
            "            direction")),
        of("no mask of what was rolled", (either(MASK, "-?100"),), (
            "        if self.shift_size <= 0:\n            return None",
            "        if True:\n            return None")),
        of("bias transposed", (r"transpos|order|swap|exchang§permute|T\b",), (
            "return relative_position_bias.permute(2, 0, 1)",
            "return relative_position_bias.permute(2, 1, 0)")),
        of("bias' rows counted by height", (
            r"bias|position|index|order|table|rows",), (
            "relative_coords[:, :, 0] *= 2 * self.window_size[1] - 1",
            "relative_coords[:, :, 0] *= 2 * self.window_size[1] - 2")),
        of("no bias", (r"bias|summand|added|unused§\+",), (
            "combined_mask = relative_position_bias\n",
            "combined_mask = None\n")),
        of("patches merged by rows", (ORDER,), (
            "for col in range(2) for row in range(2)]",
            "for row in range(2) for col in range(2)]")),
        of("merged before they are normed", (
            "norm", r"before|order|place|after|behind|input"), (
            "        input_feature = self.norm(input_feature)\n"
            "        input_feature = self.reduction(input_feature)",
            "        input_feature = self.reduction(input_feature)\n"
            "        input_feature = nn.functional.layer_norm(\n"
            "            input_feature, input_feature.shape[-1:])")),
        of("windows cut without exchange", (ORDER,), (
            "windows = input_feature.transpose(2, 3).contiguous().view(",
            "windows = input_feature.contiguous().view(")),
        of("residual from the norm", (RESIDUAL + "|input|norm",), (
            "        residual = hidden_states\n        hidden_states = "
            "self.layernorm_after(hidden_states)",
            "        hidden_states = self.layernorm_after(hidden_states)\n"
            "        residual = hidden_states")),
        of("scaled twice", (SCALE,), (
            "query, key.transpose(2, 3)) * scaling",
            "query, key.transpose(2, 3)) * scaling**2")),
    ]
