"""Sounds: log-mel spectrograms as transformers computes them, and waves."""

import functools

import numpy as np

from benchmarks.dumps.pair import fault, same, unknown
from parity.dumps.named import trace_of

RATE = 16000


@functools.cache
def wave():
    """Two seconds: a rising tone with grain, silence, and a whisper."""
    draw = np.random.default_rng(0)
    t = np.arange(2 * RATE) / RATE
    made = 0.3 * np.sin(2 * np.pi * 220 * t * (1 + 0.3 * t)) + draw.normal(
        0, 0.02, t.size) * np.sin(3 * t) ** 2
    made[5000:7000] = 0
    made[20000:22000] *= 1e-5
    return made.astype(np.float32)


def spectrogram(window="hann", length=400, hop=160, edges="reflect",
                centred=True, scale="slaney", norm="slaney", power=2.0,
                floor=1e-10, log="log10", limited=True, periodic=True,
                drop=True, whisper=True, lowest=0, highest=RATE / 2):
    """transformers.audio_utils' own, Whisper's if nothing is said."""
    from transformers import audio_utils
    filters = audio_utils.mel_filter_bank(
        1 + length // 2, 80, lowest, highest, RATE, norm=norm, mel_scale=scale)
    made = audio_utils.spectrogram(
        wave(), audio_utils.window_function(length, window,
                                            periodic=periodic),
        length, hop, power=power, center=centred, pad_mode=edges,
        mel_filters=filters, mel_floor=floor, log_mel=log)
    made = made[:, :-1] if drop else made
    made = np.maximum(made, made.max() - 8) if limited else made
    return ((made + 4) / 4 if whisper else made).astype(np.float32)[None]


@functools.cache
def right():
    """Whisper's own extractor."""
    from transformers import WhisperFeatureExtractor
    return np.asarray(WhisperFeatureExtractor(chunk_length=2)(
        wave(), sampling_rate=RATE, return_tensors="np")["input_features"])


def side(array, raw=True, name="input_features", rate=RATE):
    """A Trace that was given these features."""
    made = trace_of({f"inputs/{name}": array,
                     "outputs/x": np.ones((1, 2), np.float32)}, "dump", "")
    if raw:
        made.raw |= {"audio": wave(), "rate": rate}
    return made


def fault_of(name, says, two, one=right, raw=True):
    """A fault by two functions that make the features."""
    fault(says, name=name)(lambda _: (side(one(), raw), side(two(), raw)))


for _name, _says, _settings in (
        ("window", "window Hann in a, Hamming in b", {"window": "hamming"}),
        ("symmetric window", "window Hann in a, Hann, symmetric in b",
         {"periodic": False}),
        ("hop", "hop 160 in a, 200 in b", {"hop": 200}),
        ("window length", "length 400 in a, 512 in b", {"length": 512}),
        ("mel scale", "mel scale slaney in a, htk in b", {"scale": "htk"}),
        ("mel norm", "mel norm slaney in a, none in b", {"norm": None}),
        ("magnitudes", "power 2 in a, 1 in b", {"power": 1.0}),
        ("log floor", "log floor 1e-10 in a, 1e-05 in b", {"floor": 1e-5}),
        ("no range", "range 8 in a, all in b", {"limited": False}),
        ("zeros beyond the ends", "edges reflected in a, zeros in b",
         {"edges": "constant"}),
        ("nothing beyond the ends", "edges reflected in a, none in b",
         {"centred": False}),
        ("last frame", "last frame dropped in a, kept in b", {"drop": False}),
        ("not scaled", r"b is a times 4 -4", {"whisper": False}),
        ("scale and window", "window Hann in a, Hamming in b, and mel scale "
         "slaney in a, htk in b", {"window": "hamming", "scale": "htk"})):
    fault_of(_name, _says, functools.partial(spectrogram, **_settings))

fault_of("natural logarithm", "b is the natural logarithm, a that to base 10",
         lambda: spectrogram(log="log", limited=False, whisper=False),
         lambda: spectrogram(limited=False, whisper=False))


@functools.cache
def extracted(seconds=2, loud=1, **settings):
    """transformers' extractor of Whisper, and how loud the wave is."""
    from transformers import WhisperFeatureExtractor
    return np.asarray(WhisperFeatureExtractor(chunk_length=seconds, **settings)(
        wave() * np.float32(loud), sampling_rate=RATE,
        return_tensors="np")["input_features"])


fault_of("mel filters", "80 mel filters in a, 128 in b",
         lambda: extracted(feature_size=128))
fault_of("longer", "the sound lasts 2 s in a, 5 s in b, with zeros at its end",
         lambda: extracted(5))
fault_of("longer, and its window", "length 400 in a, 512 in b",
         lambda: extracted(5, n_fft=512), lambda: extracted(5))
fault_of("whole numbers", r"b is a \+2.257\d, as of a wave in whole numbers of "
         "16 bits", lambda: extracted(loud=32768))
fault_of("lowest frequency", "lowest 0 in a, 50 in b",
         lambda: spectrogram(lowest=50))
fault_of("highest frequency", "highest half the rate in a, 7600 in b",
         lambda: spectrogram(highest=7600))


def waves(name, says, two, one=lambda: wave()[None]):
    """A fault of the waves, which are the inputs themselves."""
    fault_of(name, says, two, one, raw=False)


waves("16 bits' range", r"b is a times 32768",
      lambda: wave()[None] * np.float32(32768))
waves("normalised", "b is a with mean 0 and variance 1 of each row",
      lambda: ((wave() - wave().mean()) / np.sqrt(
          wave().var() + 1e-7))[None])
waves("rounded to 16 bits", "b's numbers are rounded to 16 bits",
      lambda: (np.rint(wave() * 32768) / 32768).astype(np.float32)[None])
waves("clipped", r"b is a clipped to -0.2 … 0.2",
      lambda: wave()[None].clip(-0.2, 0.2))
waves("padded", "b has 400 zeros more at its end",
      lambda: np.pad(wave()[None], ((0, 0), (0, 400))))
waves("padded before", "b has 160 zeros more at its beginning",
      lambda: np.pad(wave()[None], ((0, 0), (160, 0))))
waves("delayed", "b begins 25 places later than a",
      lambda: np.pad(wave()[25:], (0, 25), "edge")[None])
waves("other bytes", "b's numbers are a's with their bytes in the other "
      "order", lambda: wave()[None].byteswap())


@fault("the samples a second are 16000 in a and 8000 in b")
def rate(_):
    """Another rate was said."""
    return side(right()), side(spectrogram(scale="htk"), rate=8000)


@same
def frames_first(_):
    """Frames before the bins in b."""
    return side(right()), side(right().swapaxes(1, 2), name="features")


@same
def two_extractors(_):
    """What both give, to the bit."""
    return side(right()), side(right().copy(), raw=False)


@same
def channels(_):
    """A wave with and without an axis of channels."""
    return side(wave()[None], False, "wave"), side(
        wave()[None, None], False, "wave")


@unknown
def faster(_):
    """A wave played faster."""
    at = np.arange(0, wave().size - 1, 1.01)
    fast = np.interp(at, np.arange(wave().size), wave())
    return side(wave()[None], False), side(
        np.pad(fast, (0, wave().size - fast.size))[None].astype(np.float32),
        False)


@unknown
def masked(_):
    """Bins that were left out, as for training."""
    made = right().copy()
    made[:, 20:30] = 0
    return side(right()), side(made)


@unknown
def smoothed(_):
    """A spectrogram that was smoothed over time."""
    made = right()
    return side(made), side((made + np.roll(made, 1, 2)) / 2)


@unknown
def another_sound(_):
    """Another sound's spectrogram, said to be of this one."""
    return side(right()), side(np.roll(right(), 60, 1))
