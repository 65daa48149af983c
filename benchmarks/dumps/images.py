"""Images: processors by Pillow and torch, which differ in one thing or two."""

import functools

import numpy as np

from benchmarks.dumps.pair import fault, same, unknown
from parity.dumps.named import trace_of

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CLIP = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258,
                                              0.27577711)


@functools.cache
def image(height=90, width=120):
    """Levels [H W 3] with edges, slopes and grain."""
    draw = np.random.default_rng(0)
    y, x = np.mgrid[:height, :width]
    base = np.stack([128 + 90 * np.sin(x / 9) * np.cos(y / 13),
                     (x * 2 + y) % 200, 120 + 100 * ((x // 15 + y // 11) % 2)
                     - 60], -1)
    return (base + draw.normal(0, 12, base.shape)).clip(0, 255).astype(
        np.uint8)


def pillow(filter_="BICUBIC", size=(32, 32), of=None):
    """Resized by Pillow: levels, rounded."""
    from PIL import Image
    return np.asarray(Image.fromarray(image() if of is None else of).resize(
        size[::-1], Image.Resampling[filter_])).astype(np.float64)


def by_torch(mode="bicubic", antialias=True, rounded=False, corners=None,
             size=(32, 32), whole=False):
    """Resized by torch.nn.functional.interpolate, in whole levels or not."""
    import torch
    levels = torch.tensor(image().astype(
        np.uint8 if whole else np.float32)).permute(2, 0, 1)[None]
    made = torch.nn.functional.interpolate(
        levels, size, mode=mode, align_corners=corners,
        **({"antialias": True} if antialias else {}))
    made = made[0].permute(1, 2, 0).numpy().astype(np.float64)
    return np.rint(made).clip(0, 255) if rounded else made


def pixels(levels, stats=IMAGENET, scale=1 / 255, last=False):
    """Normalised pixels [1 3 H W], or with channels last."""
    made = (levels * scale - np.array(stats[0])) / np.array(stats[1])
    made = made if last else made.transpose(2, 0, 1)
    return made[None].astype(np.float32)


def side(array, raw=True, name="pixel_values"):
    """A Trace that was given these pixels."""
    made = trace_of({f"inputs/{name}": array,
                     "outputs/x": np.ones((1, 2), np.float32)}, "dump", "")
    if raw:
        made.raw["image"] = image()
    return made


def fault_of(name, says, one, two, raw=True):
    """A fault by two functions that make the pixels."""
    fault(says, name=name)(lambda _: (side(one(), raw), side(two(), raw)))


def right():
    """Pillow's bicubic, over 255, ImageNet's mean."""
    return pixels(pillow())


fault_of("bilinear", "resampling bicubic in a, bilinear in b", right,
         lambda: pixels(pillow("BILINEAR")))
fault_of("lanczos", "resampling bicubic in a, lanczos in b", right,
         lambda: pixels(pillow("LANCZOS")))
fault_of("nearest", "resampling bicubic in a, nearest in b", right,
         lambda: pixels(pillow("NEAREST")))
fault_of("antialias", "antialias on in a, off in b",
         lambda: pixels(by_torch("bilinear")),
         lambda: pixels(by_torch("bilinear", False)))
fault_of("antialias, of two libraries",
         "resampling bicubic in a, bicubic .a = -0.75. in b, and antialias on "
         "in a, off in b, and rounding .*", right,
         lambda: pixels(by_torch(antialias=False, rounded=True)))
fault_of("corners", "corners free in a, aligned in b",
         lambda: pixels(by_torch("bilinear", False)),
         lambda: pixels(by_torch("bilinear", False, corners=True)))
fault_of("not rounded", "rounding to whole levels after each axis in a, none "
         "in b", right, lambda: pixels(by_torch()))
fault_of("rounded later", "rounding to whole levels after each axis in a, to "
         "whole levels at the end in b", right,
         lambda: pixels(by_torch(rounded=True)))
for _raw in (True, False):
    fault_of("slow and fast" + ("" if _raw else ", without the image"),
             r"\d+ of 3072 numbers are one whole level apart, as two libraries "
             "round one way of resizing", lambda: pixels(pillow("BILINEAR")),
             lambda: pixels(by_torch("bilinear", whole=True)), _raw)
fault_of("rounded, without the image", "levels are whole numbers in a before "
         "they are normalised, and not in b",
         lambda: pixels(by_torch(rounded=True)), lambda: pixels(by_torch()),
         raw=False)
fault_of("not over 255", "levels are multiplied by 1/255 in a, 1 in b", right,
         lambda: pixels(pillow(), scale=1.0))
fault_of("over 127.5", "levels are multiplied by 1/255 in a, 1/127.5 in b",
         lambda: pixels(pillow(), ((0,), (1,))),
         lambda: pixels(pillow(), ((0,), (1,)), 1 / 127.5), raw=False)
fault_of("CLIP's mean", "mean and standard deviation are ImageNet's in a, "
         "CLIP's in b", right, lambda: pixels(pillow(), CLIP), raw=False)
fault_of("mean of a half", "mean and standard deviation are ImageNet's in a, "
         "0.5 in b", right, lambda: pixels(pillow(), ((0.5,), (0.5,))))
fault_of("not normalised", "mean and standard deviation are ImageNet's in a, "
         "left out in b", right, lambda: pixels(pillow(), ((0,), (1,))))
fault_of("BGR", "b is a with its channels reversed, as BGR for RGB, before "
         "ImageNet's mean and standard deviation", right,
         lambda: pixels(pillow()[..., ::-1]))
fault_of("BGR afterwards", "b is a with its channels reversed, as BGR for RGB",
         right, lambda: right()[:, ::-1], raw=False)
fault_of("upside down", "b is a with its rows upside down", right,
         lambda: right()[:, :, ::-1], raw=False)
fault_of("height and width", "b is a with height and width exchanged", right,
         lambda: right().swapaxes(2, 3), raw=False)
fault_of("cropped", "resized 32×32 in a, 32×42 in b", right,
         lambda: pixels(pillow(size=(32, 42))[:, 5:37]))


def conv_next(share=224 / 256):
    """transformers' own, which resizes by a share before it crops."""
    from PIL import Image
    from transformers import ConvNextImageProcessorPil
    return np.asarray(ConvNextImageProcessorPil(
        size={"shortest_edge": 48}, crop_pct=share)(
        images=Image.fromarray(image()), return_tensors="np")["pixel_values"])


fault_of("share that is cropped", "resized 54×72 in a, 48×64 in b", conv_next,
         lambda: conv_next(1.0))
fault_of("filter and mean", "resampling bicubic in a, bilinear in b, and mean "
         "and standard deviation are ImageNet's in a, 0.5 in b", right,
         lambda: pixels(pillow("BILINEAR"), ((0.5,), (0.5,))))
fault_of("a mean of its own", "b is a scaled and shifted by channel: .*",
         right, lambda: pixels(pillow(), ((0.4, 0.41, 0.43), (0.3, 0.31,
                                                              0.29))))
fault_of("half precision", "b's numbers are rounded to float16", right,
         lambda: right().astype(np.float16).astype(np.float32), raw=False)


@fault("by rounding alone, .*")
def computed_in_float64(_):
    """Normalised in float64 and in float32."""
    levels = pillow().astype(np.float32)
    mean, std = (np.array(each, np.float32) for each in IMAGENET)
    short = (levels * np.float32(1 / 255) - mean) / std
    return side(right()), side(np.ascontiguousarray(
        short.transpose(2, 0, 1))[None])


@same
def channels_last(_):
    """The channels last in b, and another name."""
    return side(right()), side(pixels(pillow(), last=True), name="images")


@same
def without_a_batch(_):
    """No axis of images in b."""
    return side(right()), side(right()[0])


@same
def transformers_clip(_):
    """transformers' own processor, and ours."""
    from transformers import CLIPImageProcessor
    processor = CLIPImageProcessor(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    made = np.asarray(processor(image(), return_tensors="np")[
        "pixel_values"], np.float32)
    return side(made), side(made.copy())


@same
def gray(_):
    """One channel, with and without its axis."""
    made = right()[:, :1]
    return side(made, False), side(made[:, 0], False)


@unknown
def gamma(_):
    """A gamma, which no processor has."""
    return side(right()), side(pixels(255 * (pillow() / 255) ** 1.1))


@unknown
def grain(_):
    """Noise."""
    draw = np.random.default_rng(1)
    return side(right()), side(pixels(
        pillow() + draw.normal(0, 2, (32, 32, 3))))


@unknown
def another_image(_):
    """Another image of the same size, without what they were made of."""
    other = np.roll(image(), 17, 0)[::-1]
    return side(right(), False), side(pixels(pillow(of=other)), False)


@unknown
def sharpened(_):
    """A filter of somebody's own."""
    levels = pillow()
    blurred = (np.roll(levels, 1, 0) + np.roll(levels, -1, 0)) / 2
    return side(right()), side(pixels(1.5 * levels - 0.5 * blurred))


@unknown
def cropped_elsewhere(_):
    """A random crop."""
    return side(right()), side(pixels(pillow(size=(40, 53))[3:35, 2:34]))
