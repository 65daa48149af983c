"""Sounds: read, or refused; the picture and the vectors of others."""

import wave

import numpy as np
import pytest

from transformer_contract import sound
from parity_io.errors import InputError


def written(path, samples, rate=sound.RATE, width=2, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(np.asarray(samples, f"<i{width}").tobytes())
    return path


def test_a_sound_that_is_cut_short_is_refused(tmp_path):
    path = written(tmp_path / "a.wav", tone(), channels=2)
    whole = path.read_bytes()
    for content in (whole[:-1], whole[:30], whole[:4] + b"\xff" * 4
                    + whole[8:16] + b"\xf0\0\0\0" + whole[20:], b""):
        path.write_bytes(content)
        with pytest.raises(InputError, match="cut short|damaged|WAV"):
            sound.read(path)


def tone(seconds=1.0):
    time = np.arange(int(sound.RATE * seconds)) / sound.RATE
    return 8000 * np.sin(2 * np.pi * (300 + 400 * time) * time)


def test_samples_come_back(tmp_path):
    path = written(tmp_path / "a.wav", tone())
    np.testing.assert_allclose(
        sound.read(path), tone() / 32768, atol=1 / 32768)
    both = np.stack([tone(), 0 * tone()], axis=1).reshape(-1)
    path = written(tmp_path / "b.wav", both, channels=2)
    np.testing.assert_allclose(
        sound.read(path), tone() / 65536, atol=1 / 32768)


@pytest.mark.parametrize("words, more", [
    ("22050 samples a second", {"rate": 22050}),
    ("32 bits", {"width": 4}), ("31.0 seconds", {"samples": tone(31)}),
    ("0.0 seconds", {"samples": []})])
def test_other_sounds_are_refused(tmp_path, words, more):
    path = written(tmp_path / "a.wav", **{"samples": tone(), **more})
    with pytest.raises(InputError, match=words):
        sound.read(path)


def test_what_is_no_sound_is_refused(tmp_path):
    for content in (b"", b"text", b"RIFF\x04\x00\x00\x00WAVE"):
        (tmp_path / "a.wav").write_bytes(content)
        with pytest.raises(InputError, match="cannot be read as a WAV"):
            sound.read(tmp_path / "a.wav")
    with pytest.raises(InputError):
        sound.read(tmp_path / "nowhere.wav")


def test_the_picture_is_that_of_transformers():
    """Its features are float32; its filters are librosa's."""
    transformers = pytest.importorskip("transformers")
    samples = tone() / 32768
    theirs = transformers.WhisperFeatureExtractor()(
        samples.astype(np.float32), sampling_rate=sound.RATE,
        return_tensors="np")["input_features"][0]
    ours = sound.log_mel(samples, 80)
    assert ours.shape == theirs.shape == (80, 3000)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


def test_filters_have_equal_areas_on_the_mel_scale():
    """Below 1000 Hz they are equally wide, above each wider by one factor."""
    edges = sound.hertz_of(np.arange(0, 46, 3.0))
    assert edges[5] == 1000 and np.allclose(np.diff(edges[:6]), 200)
    ratios = edges[6:] / edges[5:-1]
    assert np.allclose(ratios, ratios[0])
    found = sound.filters(8)
    areas = found.sum(axis=1) * sound.RATE / sound.WINDOW
    assert found.shape == (8, 201) and (found >= 0).all()
    np.testing.assert_allclose(areas[1:], 1, rtol=0.05)


@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_are_those_of_torch(stride):
    torch = pytest.importorskip("torch")
    draw = np.random.default_rng(stride)
    x, weight, bias = (draw.normal(size=shape) for shape in (
        (2, 5, 12), (7, 5, 3), (7,)))
    expected = torch.nn.functional.gelu(torch.nn.functional.conv1d(
        *map(torch.from_numpy, (x, weight, bias)), stride=stride, padding=1))
    found = sound.convolved(x, weight, bias, stride)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-12, atol=1e-14)
