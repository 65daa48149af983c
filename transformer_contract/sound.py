"""A sound as Whisper reads it: samples, a log-mel picture, vectors.

What comes before the encoder, once for all four, in NumPy: it is the input of a
model here, as token ids are of others. Radford et al. 2022, section 2.2.
"""

import functools
import math
import wave

import numpy as np

from parity_io.errors import InputError
from parity_io.files import check_ordinary

#: Samples a second, of a frame's window, between frames, and seconds at most.
RATE, WINDOW, HOP, SECONDS = 16_000, 400, 160, 30


#: What Hugging Face and CTranslate2 call an array of a convolution.
NAMES = ("model.encoder.{}.{}", "encoder/{}/{}")


def read(path):
    """The samples of a WAV file, float64 [N], between -1 and 1.

    Raises:
        InputError: it is no WAV of 16 bits, or has another rate or length.
    """
    check_ordinary(path)
    try:
        with wave.open(str(path), "rb") as file:
            rate, width = file.getframerate(), file.getsampwidth()
            channels = file.getnchannels()
            content = file.readframes(file.getnframes())
    except (wave.Error, EOFError, OSError, RuntimeError) as error:
        why = str(error) or "it is damaged or cut short"  # as wave says it
        raise InputError(
            f"{str(path)!r} cannot be read as a WAV file ({why}); save the "
            "sound as WAV.") from None
    if rate != RATE or width != 2:
        raise InputError(
            f"{str(path)!r} has {rate} samples a second of {8 * width} bits; "
            f"convert it to {RATE} of 16 bits.")
    if len(content) % (width * channels):
        raise InputError(
            f"{str(path)!r} is cut short within a sample; save the sound "
            "again.")
    samples = np.frombuffer(content, "<i2").reshape(-1, channels) / 32768
    if not 0 < len(samples) <= RATE * SECONDS:
        raise InputError(
            f"{str(path)!r} is {len(samples) / RATE:.1f} seconds long; give "
            f"up to {SECONDS}.")
    return samples.mean(axis=1)


def hertz_of(mel):
    """The frequency of a place on Slaney's mel scale."""
    linear = mel * 200 / 3
    return np.where(mel < 15, linear, 1000 * 6.4 ** ((mel - 15) / 27))


@functools.cache
def filters(count):
    """Triangles of equal area on the mel scale: [count, 201]."""
    top = 15 + 27 * math.log(RATE / 2 / 1000) / math.log(6.4)
    edges = hertz_of(np.linspace(0, top, count + 2))
    bins = np.linspace(0, RATE / 2, WINDOW // 2 + 1)
    rise = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
    fall = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    area = 2 / (edges[2:] - edges[:-2])
    return np.maximum(0, np.minimum(rise, fall)) * area[:, None]


def log_mel(samples, count):
    """The picture that Whisper sees of up to 30 seconds: [count, 3000]."""
    whole = np.zeros(RATE * SECONDS)
    whole[:len(samples)] = samples
    padded = np.pad(whole, WINDOW // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    power = np.abs(np.fft.rfft(frames[:-1] * window)) ** 2
    mel = np.log10(np.maximum(filters(count) @ power.T, 1e-10))
    return (np.maximum(mel, mel.max() - 8) + 4) / 4


def convolved(x, weight, bias, stride):
    """A convolution over time of width 3, padded by 1, and its GELU.

    Args:
        x: [B C T].
        weight, bias: [D C 3] and [D], as the file has them.
    """
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(
        padded, 3, axis=2)[:, :, ::stride]
    y = np.einsum("bctk,dck->bdt", windows, weight, optimize=True)
    y = y + bias[:, None]
    erf = np.vectorize(math.erf, otypes=[float])
    return y * 0.5 * (1 + erf(y / math.sqrt(2)))


def vectors(picture, arrays, names=NAMES[0]):
    """What Whisper's encoder reads: [B C T] to [B T/2 D], in float64.

    Args:
        picture: float [B C T], of ``log_mel``.
        arrays: the file's own; its two convolutions are used.
        names: how it calls the weight or bias of a convolution.
    """
    x = np.asarray(picture, np.float64)
    for name, stride in (("conv1", 1), ("conv2", 2)):
        weight, bias = (
            np.asarray(arrays[names.format(name, kind)], np.float64)
            for kind in ("weight", "bias"))
        x = convolved(x, weight, bias, stride)
    return x.transpose(0, 2, 1)
