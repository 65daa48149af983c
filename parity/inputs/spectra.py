"""A log-mel spectrogram made anew in every likely way.

A recipe that gives a's is sought first, then the one with the fewest other
settings that gives b's. What differs between the two is told.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable

import numpy as np

#: How far a spectrogram may be from one made anew, of its spread.
NEAR = 2e-3


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a wave becomes a spectrogram; fields are told by their names.

    Attributes:
        window: a key of WINDOWS.
        length: of a window and of the transform, in samples.
        hop: from one window to the next.
        edges: what stands beyond the ends: "reflected", "zeros" or "none".
        mel_scale: "slaney" or "htk".
        mel_norm: whether each filter has area one: "slaney" or "none".
        power: 2 of energies, 1 of magnitudes.
        log_floor: what an energy is at least.
        range: how far below the largest number others may be: "8" or "all".
        preemphasis: how much of the sample before is taken away.
        last_frame: "kept" or "dropped".
        lowest, highest: frequencies between which the filters lie, in Hz; of
            the highest 0 is half the rate.
    """

    window: str = "Hann"
    length: int = 400
    hop: int = 160
    edges: str = "reflected"
    mel_scale: str = "slaney"
    mel_norm: str = "slaney"
    power: int = 2
    log_floor: float = 1e-10
    range: str = "all"
    preemphasis: float = 0.0
    last_frame: str = "kept"
    lowest: float = 0.0
    highest: float = 0.0


#: What a setting may be instead.
CHOICES = {
    "window": ("Hann", "Hann, symmetric", "Hamming", "Hamming, symmetric",
               "Povey", "rectangular"),
    "length": (256, 320, 400, 480, 512, 640, 800, 1024, 2048),
    "hop": (80, 100, 128, 160, 200, 240, 256, 320, 400, 512),
    "edges": ("reflected", "zeros", "none"),
    "mel_scale": ("slaney", "htk"), "mel_norm": ("slaney", "none"),
    "power": (2, 1),
    "log_floor": (1e-10, 1e-12, 1e-8, 1e-7, 1.1920929e-07, 1e-6, 1e-5, 1e-3),
    "range": ("all", "8"), "preemphasis": (0.0, 0.97),
    "last_frame": ("kept", "dropped"),
    "lowest": (0.0, 20.0, 50.0, 60.0, 80.0, 125.0),
    "highest": (0.0, 3800.0, 4000.0, 7500.0, 7600.0, 8000.0, 11025.0, 14000.0),
}

#: Whisper's, librosa's, torchaudio's and Kaldi's own.
BASES = (
    Recipe(range="8", last_frame="dropped"),
    Recipe(length=2048, hop=512, edges="zeros"),
    Recipe(hop=200, mel_scale="htk", mel_norm="none"),
    Recipe("Povey", 400, 160, "none", "htk", "none", 2, 1.1920929e-07, "all",
           0.97),
)

WINDOWS: dict[str, Callable] = {
    "Hann": lambda n: np.hanning(n + 1)[:-1],
    "Hann, symmetric": np.hanning,
    "Hamming": lambda n: np.hamming(n + 1)[:-1],
    "Hamming, symmetric": np.hamming,
    "Povey": lambda n: np.hanning(n) ** 0.85,
    "rectangular": np.ones,
}


@functools.lru_cache(64)
def mel_filters(count, length, rate, scale, norm, lowest, highest):
    """Triangles [count, length/2 + 1] over the frequencies of a transform."""
    def to_mel(hertz):
        hertz = np.asarray(hertz, np.float64)
        if scale == "htk":
            return 2595 * np.log10(1 + hertz / 700)
        return np.where(hertz < 1000, hertz * 3 / 200, 15 + 27 / np.log(
            6.4) * np.log(np.maximum(hertz, 1e-9) / 1000))

    def to_hertz(mel):
        if scale == "htk":
            return 700 * (10 ** (mel / 2595) - 1)
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp(
            np.log(6.4) / 27 * (mel - 15)))
    edges = to_hertz(np.linspace(
        to_mel(lowest), to_mel(highest or rate / 2), count + 2))
    places = np.linspace(0, rate / 2, length // 2 + 1)
    low, middle, high = (edges[i:i + count, None] for i in range(3))
    filters = np.maximum(0, np.minimum((places - low) / (middle - low),
                                       (high - places) / (high - middle)))
    return filters * (2 / (high - low)) if norm == "slaney" else filters


@functools.lru_cache(512)
def _energies(wave, length, hop, edges, window, preemphasis):
    """|transform| of each window [frames, length/2 + 1]; a wave by its bytes.
    """
    x = np.frombuffer(wave)
    if preemphasis:
        x = np.append(x[:1], x[1:] - preemphasis * x[:-1])
    if edges != "none":
        x = np.pad(x, length // 2, "reflect" if edges == "reflected"
                   else "constant")
    if len(x) < length:
        return None
    frames = np.lib.stride_tricks.sliding_window_view(x, length)[::hop]
    return np.abs(np.fft.rfft(frames * WINDOWS[window](length)))


def made(recipe, wave, rate, bins):
    """The spectrogram [bins frames] of a wave, or None if it is too short."""
    sizes = _energies(wave, recipe.length, recipe.hop, recipe.edges,
                      recipe.window, recipe.preemphasis)
    if sizes is None:
        return None
    energies = mel_filters(bins, recipe.length, rate, recipe.mel_scale,
                           recipe.mel_norm, recipe.lowest,
                           recipe.highest) @ (sizes ** recipe.power).T
    if recipe.last_frame == "dropped":
        energies = energies[:, :-1]
    if not energies.size:
        return None
    logs = np.log10(np.maximum(energies, recipe.log_floor))
    return logs if recipe.range == "all" else np.maximum(
        logs, logs.max() - float(recipe.range))


def padded(recipe, samples, rate, frames):
    """How many samples give so many frames: those that are there, or whole
    seconds, the rest zeros; None if neither does."""
    ends = 0 if recipe.edges == "none" else recipe.length // 2 * 2
    fewer = recipe.last_frame == "dropped"
    if 1 + (samples + ends - recipe.length) // recipe.hop - fewer == frames:
        return samples
    filled = (frames - (not fewer)) * recipe.hop
    return filled if ends and filled > samples and not filled % rate else None


def fit(recipe, wave, rate, array):
    """(slope, shift) with which a recipe gives an array, or None."""
    samples = padded(recipe, len(wave) // 8, rate, array.shape[1])
    if samples is None:
        return None
    wave = wave.ljust(samples * 8, b"\0")
    x = made(recipe, wave, rate, len(array))
    if x is None or x.shape != array.shape or not np.ptp(x):
        return None
    slope = ((x - x.mean()) * (array - array.mean())).sum() / (
        (x - x.mean()) ** 2).sum()
    shift = array.mean() - slope * x.mean()
    far = np.abs(slope * x + shift - array).max()
    return (slope, shift) if far <= NEAR * np.ptp(array) else None


def spectra_parting(mine, other, wave, rate):
    """What differs in how two spectrograms were made; "" if not shown.

    Args:
        mine, other: a's and b's: [bins frames], or with frames first.
        wave: what both were made of, one row of samples.
        rate: samples a second.
    """
    wave = np.ascontiguousarray(wave, np.float64).reshape(-1).tobytes()
    one, two = (_bins_first(array) for array in (mine, other))
    if one is None or two is None:
        return ""
    first = _search(BASES, wave, rate, one, 2)
    if first is None:
        return ""
    second = _search([first[0]], wave, rate, two, 2)
    if second is None:
        return ""
    names = [name for name in CHOICES if getattr(
        first[0], name) != getattr(second[0], name)]
    words = ["{} {} in a, {} in b".format(name.replace("_", " "), *(
        _value(name, getattr(recipe, name)) for recipe in (
            first[0], second[0]))) for name in names]
    if len(one) != len(two):
        words.append(f"{len(one)} mel filters in a, {len(two)} in b")
    seconds = [padded(recipe, len(wave) // 8, rate, array.shape[1]) / rate
               for recipe, array in ((first[0], one), (second[0], two))]
    if seconds[0] != seconds[1]:
        words.append(f"the sound lasts {seconds[0]:g} s in a, {seconds[1]:g} "
                     "s in b, with zeros at its end")
    (slope, shift), (times, plus) = first[1], second[1]
    ratio = times / slope
    moved = plus - ratio * shift
    if abs(ratio - 1) > NEAR:
        words.append("b is the natural logarithm, a that to base 10"
                     if abs(ratio - np.log(10)) < NEAR * 3 and
                     abs(slope - 1) < NEAR else
                     f"b is a times {ratio:.5g} {moved:+.5g}")
    elif abs(moved) > NEAR * max(1, np.ptp(two)):
        louder = 10 ** (moved / slope / first[0].power)
        words.append(f"b is a {moved:+.5g}" + (
            ", as of a wave in whole numbers of 16 bits"
            if abs(louder / 32768 - 1) < NEAR else ""))
    return ", and ".join(words)


def _search(bases, wave, rate, array, most):
    """The recipe nearest to one of some with which an array comes out.

    Returns:
        The Recipe with its (slope, shift); None where there is none, or two
        equally near differ in what they say.
    """
    for count in range(most + 1):
        found = {}
        for base in bases:
            for names in itertools.combinations(CHOICES, count):
                lists = [[each for each in CHOICES[name]
                          if each != getattr(base, name)] for name in names]
                for values in itertools.product(*lists):
                    recipe = dataclasses.replace(
                        base, **dict(zip(names, values)))
                    if recipe.highest >= rate / 2:  # as if it were not said
                        continue
                    if fitted := fit(recipe, wave, rate, array):
                        found[recipe] = fitted
            if found:
                break
        if found:
            return next(iter(found.items())) if len(found) == 1 else None
    return None


def _bins_first(array):
    """One spectrogram with the frames along its last axis; None of others."""
    array = np.asarray(array, np.float64)
    array = array.reshape([n for n in array.shape if n != 1])
    if array.ndim != 2:
        return None
    return array if array.shape[0] in (40, 64, 80, 96, 128) else (
        array.T if array.shape[1] in (40, 64, 80, 96, 128) else array)


def _value(name, value):
    """A setting as it is told."""
    if name == "highest" and not value:
        return "half the rate"
    return f"{value:g}" if isinstance(value, float) else value
