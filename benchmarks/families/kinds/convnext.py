"""ConvNeXt."""

import numpy as np

from benchmarks.families.fault import BIAS, RESIDUAL, number
from benchmarks.families.hugging import Original, OurPort, image

CONFIG = {"hidden_sizes": [8, 12], "depths": [1, 2], "num_stages": 2,
          "patch_size": 2, "num_labels": 5, "layer_scale_init_value": 0.5}
PIXELS = image(2, 3, 12, 16)
CONVNEXT = Original("convnext", "convnext", "ConvNextForImageClassification", (
    "ConvNextConfig", CONFIG), PIXELS)
NNX = OurPort("convnext", "convnext_nnx", CONVNEXT.plain, lambda: [np.moveaxis(
    PIXELS()["pixel_values"], 1, -1)], CONFIG)

LAYER_SCALE = r"scale|factor|times|@layer_scale§\*"


def copies():
    """Faults in copies of the library's own file."""
    of = CONVNEXT.fault
    yield of("layer scale forgotten", (LAYER_SCALE,), (
        "features = self.layer_scale_parameter * features",
        "features = features"))
    yield of("layer scale on the residual too", (LAYER_SCALE,), (
        "features = residual + self.drop_path(features)",
        "features = residual * self.layer_scale_parameter[:, None, None] + "
        "self.drop_path(features)"))
    yield of("norm before the convolution", (
        r"norm", r"before|place|order|input|behind"), (
        "features = self.dwconv(features)\n        features = "
        "features.permute(0, 2, 3, 1)  # (N, C, H, W) -> (N, H, W, C)\n"
        "        features = self.layernorm(features)",
        "features = self.layernorm(features.permute(0, 2, 3, 1))\n"
        "        features = self.dwconv(features.permute(0, 3, 1, 2))\n"
        "        features = features.permute(0, 2, 3, 1)"))
    yield of("norm over places", (r"norm|mean", r"ax[ie]s|place|shape|dim"), (
        "features = features.permute(0, 2, 3, 1)\n            "
        "features = super().forward(features)\n            "
        "features = features.permute(0, 3, 1, 2)",
        "mean = features.mean((1, 2, 3), keepdim=True)\n            "
        "spread = features.var((1, 2, 3), keepdim=True, unbiased=False)\n"
        "            features = (features - mean) / (spread + self.eps).sqrt()"
        "\n            features = features * self.weight[:, None, None] + "
        "self.bias[:, None, None]"))
    yield of("gelu by tanh", ("gelu|tanh", "tanh|erf|approx"), (
        "self.act = ACT2FN[config.hidden_act]",
        'self.act = ACT2FN["gelu_new"]'))
    yield of("norm before the mean", (
        r"norm|mean|pool", r"before|order|place|pool|after|behind"), (
        "self.layernorm(last_hidden_state.mean([-2, -1]))",
        "self.layernorm(last_hidden_state.permute(0, 2, 3, 1))"
        ".mean([1, 2])"))


def ports():
    """Faults in a port to nnx."""
    of = NNX.fault
    yield of("nnx's default ε", (number(1e-6), number(1e-5)), (
        "epsilon=1e-6):", "epsilon=1e-5):"))
    yield of("padded by 2 and 4", (r"pad|shift",), (
        "padding=3, feature", "padding=((2, 4), (2, 4)), feature"))
    yield of("kernels' axes exchanged", (
        r"transpos|order|axes|exchang|swap",), change=(
        lambda arrays: {name: x.swapaxes(2, 3) if "dwconv.weight" in name
                        else x for name, x in arrays.items()}), at="dwconv")
    yield of("kernels turned round", (r"flip|revers|order|turn|rot",), change=(
        lambda arrays: {name: x[..., ::-1, ::-1] if "dwconv.weight" in name
                        else x for name, x in arrays.items()}), at="dwconv")
    yield of("no residual", (RESIDUAL,), (
        "return x + self.layer_scale", "return self.layer_scale"))
    yield of("norm forgotten before going down", (r"norm",), (
        "return self.conv(self.norm(x))", "return self.conv(x)"))
    yield of("the first place, not the mean", (
        r"mean|pool|first|average", r"first|place|mean|\[|select|slice"), (
        "x.mean((1, 2))", "x[:, 0, 0]"))
    yield of("layer scale 1 + λ", (r"\b1\b|plus",), (
        "self.layer_scale_parameter[...] *",
        "(1 + self.layer_scale_parameter[...]) *"), within=True)
    yield of("bias forgotten", (BIAS,), (
        "* self.pwconv2(y)", "* (y @ self.pwconv2.kernel[...])"), within=True)


def pairs():
    """All of them."""
    return [CONVNEXT.sound(), NNX.sound(), *copies(), *ports()]
