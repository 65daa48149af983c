"""Vectors: numbers that the teaching systems computed themselves."""

import pathlib
import shutil

import numpy as np
import pytest

from contract import layouts, weights
from contract.errors import InputError
from parity import ports, vectors
from parity.compare import MATCH

FOLDER = pathlib.Path(__file__).parent / "vectors"

#: Answers that are compared now, by file.
REPLAYED = {
    "complete_post_ln": 8 + 88,
    "complete_post_ln_adam10": 0,
    "components": 3,
    "components_eps_d_model": 3,
    "lesson_pre_ln": 6 + 92,
    "notebook_encoder_layer": 1,
    "notebook_feed_forward": 1,
    "notebook_multi_head_attention": 2,
    "notebook_numpy_multi_head": 2,
    "notebook_single_head": 4,
    "practical_post_ln": 1,
}


def test_every_file_is_counted():
    assert {path.stem for path in vectors.find([FOLDER])} == set(REPLAYED)


@pytest.mark.parametrize("name", [n for n, count in REPLAYED.items() if count])
def test_answers(port, name):
    """In the reference and in a port, at 1e-12, every answer of the file."""
    report = vectors.replay([FOLDER / f"{name}.safetensors"], [port.NAME])
    assert report.compared == 2 * REPLAYED[name]
    assert report.verdict == MATCH, report.divergences()


def test_what_is_not_replayed_is_counted():
    name = "complete_post_ln_adam10.safetensors"
    report = vectors.replay([FOLDER / name], [])
    assert report.compared == 0
    assert report.expected == report.not_compared == 1 + 88
    assert any("training" in n.reason for n in report.not_checked)
    assert report.status == 4


def test_every_layout_is_held_by_a_file():
    held = {vectors.Vector(path).layout for path in vectors.find([FOLDER])}
    assert held == set(layouts.LAYOUTS)


def rewritten(tmp_path, change, name="practical_post_ln"):
    """A copy of a vector file after ``change(arrays, sizes)``."""
    import json
    arrays, metadata = weights.load(FOLDER / f"{name}.safetensors")
    sizes = json.loads(metadata["vector"])
    change(arrays, sizes)
    from safetensors.numpy import save_file
    path = tmp_path / f"{name}.safetensors"
    arrays = {n: np.ascontiguousarray(a) for n, a in arrays.items()}
    save_file(arrays, path, metadata={"vector": json.dumps(sizes)})
    return path


CHANGES = {
    "missing": (lambda a, s: a.pop("w.final_layer.bias"), "final_layer.bias"),
    "surplus": (lambda a, s: a.update({"w.more": np.ones(2)}), "more"),
    "layout": (lambda a, s: s.update(layout="nobody's"), "nobody's"),
    "layers": (lambda a, s: s.update(n_layers=1), "layers.1"),
    "heads": (lambda a, s: s.update(n_heads=5), "n_heads"),
    "input": (lambda a, s: a.pop("in.src"), "in.src"),
    "nan": (lambda a, s: a["w.final_layer.bias"].fill(np.nan), "NaN"),
    "shape": (lambda a, s: a.update({"w.final_layer.weight": np.ones((2, 3))}),
              "shape"),
}


@pytest.mark.parametrize("how", CHANGES)
def test_wrong_files_are_refused(tmp_path, how):
    change, words = CHANGES[how]
    path = rewritten(tmp_path, change)
    with pytest.raises(InputError, match=words):
        vectors.replay([path], [])


def test_a_wrong_answer_is_a_divergence(tmp_path):
    def change(arrays, sizes):
        arrays["out.logits"][0, 0, 0] *= 1 + 1e-10
    report = vectors.replay([rewritten(tmp_path, change)], [])
    assert report.status == 1


def test_other_paths_are_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nothing.safetensors"):
        with pytest.raises(InputError):
            vectors.replay([path], [])
    shutil.copy(ports.__file__, tmp_path / "text.safetensors")
    with pytest.raises(InputError):
        vectors.replay([tmp_path], [])
    weights.save(tmp_path / "text.safetensors", {"a": np.ones(2)})
    with pytest.raises(InputError, match="not a vector file"):
        vectors.replay([tmp_path], [])
