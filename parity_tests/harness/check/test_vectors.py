"""Vectors: numbers that the teaching systems computed themselves."""

import itertools
import shutil

import numpy as np
import pytest

from transformer_contract import weights
from transformer_contract.dialects.lessons import LESSONS
from transformer_contract.dialects.rows import TRANSPOSED
from parity_io.errors import InputError
from parity import ports
from parity.check import vectors
from parity.numerics.comparator import DIVERGENCE, FREE, MATCH, within
from parity_tests.support.engines import usable
from parity_tests.support.places import PEERS, VECTORS

#: Answers that are compared now, by file.
REPLAYED = {
    "complete_post_ln": 8 + 88,
    "complete_post_ln_adam10": 1 + 88,
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
    assert {path.stem for path in vectors.find([VECTORS])} == set(REPLAYED)


@pytest.mark.parametrize("name", REPLAYED)
@pytest.mark.long(12)
def test_answers(port, name):
    """In the reference and in a port, at 1e-12, every answer of the file."""
    report = vectors.replay([VECTORS / f"{name}.safetensors"], [port.NAME])
    assert report.compared == 2 * REPLAYED[name]
    assert report.verdict == MATCH, report.divergences()


#: Steps that are compared now, by folder.
PEER_STEPS = {
    "marian": 4, "marian_early": 43, "bart": 2, "bart_early": 43,
    "whisper": 2, "bert": 1, "gpt2": 2,
    "t5_v10": 3, "t5_v11": 3, "llama_gqa": 2,
    "torch_nn_transformer_post_gelu": 1, "torch_nn_transformer_post_relu": 1,
    "torch_nn_transformer_pre_gelu": 1, "torch_nn_transformer_pre_relu": 1,
}


def test_every_peer_is_counted():
    assert {path.name for path in vectors.find([PEERS])} == set(PEER_STEPS)


@pytest.mark.long
@pytest.mark.parametrize("name, port", list(zip(
    PEER_STEPS, itertools.cycle(ports.known_ports()))), indirect=["port"])
def test_peers(port, name):
    """What the original library computed, in the reference and in a port.

    Each is replayed in one; ``parity check vectors`` replays it in all.
    """
    report = vectors.replay([PEERS / name], [port.NAME])
    assert report.compared == 2 * PEER_STEPS[name]
    assert report.verdict == MATCH, report.divergences()


def test_final_weights_that_are_the_first_are_not_compared(tmp_path):
    """Losses that fall say that weights cannot have stayed."""
    def stale(arrays, sizes):
        arrays |= {f"out.final.{name.removeprefix('w.')}": array
                   for name, array in arrays.items() if name[:2] == "w."}
    path = rewritten(tmp_path, stale, "complete_post_ln_adam10")
    assert (np.diff(vectors.Vector(path).answers["losses"]) < -0.02).all()
    report = vectors.replay([path], [])
    assert report.compared == 1 and report.expected == 1 + 88
    assert report.not_compared == 88
    assert any("first ones" in n.reason for n in report.not_checked)


def trained_by_torch(arrays, sizes):
    """Put in the weights after ten steps of torch.optim.Adam."""
    import torch
    engine = usable("torch")
    vector = vectors.Vector(VECTORS / "complete_post_ln_adam10.safetensors")
    model = engine.build("transformer", vector.config, vector.weights)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    source, target = (torch.from_numpy(arrays[f"in.{name}"])
                      for name in ("src", "tgt"))
    masks = engine.masks(source.numpy(), target.numpy()[:, :-1], 0)
    for _ in range(10):
        optimizer.zero_grad()
        output = model(source, target[:, :-1], *map(
            torch.from_numpy, masks.values()))
        torch.nn.functional.cross_entropy(
            output.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0
        ).backward()
        optimizer.step()
    found = engine.export(model)
    for ours, theirs, how in vector.table.rows_of(vector.config):
        arrays[f"out.final.{theirs}"] = (
            found[ours].T if how == TRANSPOSED else found[ours])


@pytest.mark.long(12)
def test_final_weights_of_another_adam(engine, tmp_path):
    """torch.optim.Adam, autograd and cross_entropy, ten steps: the same."""
    usable("torch")
    path = rewritten(tmp_path, trained_by_torch, "complete_post_ln_adam10")
    ports_ = [] if engine.NAME == "numpy" else [engine.NAME]
    report = vectors.replay([path], ports_)
    assert report.compared == (1 + len(ports_)) * (1 + 88)
    assert report.verdict == MATCH, report.divergences()
    free = {row.name for row in report.rows if row.verdict == FREE}
    assert len(free) == 6 and all("wk.bias" in name for name in free)


def test_wandering_is_bounded():
    """A key's bias after Adam is free, but not to go where no step leads."""
    moved = np.ones(3)
    assert within(moved + 0.1, moved, 0.2).verdict == FREE
    assert within(moved + 0.3, moved, 0.2).verdict == DIVERGENCE
    assert within(moved * np.nan, moved, 0.2).verdict == DIVERGENCE
    assert within(moved[:2], moved, 0.2).verdict == DIVERGENCE


def test_every_layout_is_held_by_a_file():
    held = {vectors.Vector(path).layout for path in vectors.find([VECTORS])}
    assert held == set(LESSONS)


def rewritten(tmp_path, change, name="practical_post_ln"):
    """A copy of a vector file after ``change(arrays, sizes)``."""
    import json
    arrays, metadata = weights.load(VECTORS / f"{name}.safetensors")
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


def test_a_peer_that_lacks_something_is_refused(tmp_path):
    """Its description, an input, its weights."""
    from safetensors.numpy import save_file
    arrays, metadata = weights.load(
        PEERS / "torch_nn_transformer_pre_relu" / "io.safetensors")
    for words, without, told in (
            ("description", "", {}), ("in.src'", "in.src", metadata),
            ("linear1.bias", "w.encoder.layers.0.linear1.bias", metadata)):
        save_file({name: array for name, array in arrays.items()
                   if name != without}, tmp_path / "io.safetensors",
                  metadata=told)
        with pytest.raises(InputError, match=words):
            vectors.replay([tmp_path], [])


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
