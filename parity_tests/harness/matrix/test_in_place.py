"""A model compared where it lies: what is wrong there is seen, and named."""

import json

import numpy as np
import pytest

from parity import ports
from parity.check import workers
from parity.matrix import in_place, processes
from parity.numerics import tolerances
from parity.subjects import Subject
from parity_tests.support import meshes as planted
from parity_tests.support.commands import invoke

FOUR = "data=2,model=2"
AXES = {"data": 2, "model": 2}


def drifted(theirs):
    """One of the devices that hold a part of a weight has another bit."""
    from unittest import mock
    old = theirs.MeshEngine.build

    def build(self, *given):
        import jax
        model = old(self, *given)
        weight = next(
            weight for weight in theirs.leaves(model)
            if weight.name == "encoder.layers.1.feed_forward.inner.kernel")
        array = weight.get()
        parts = [shard.data for shard in array.addressable_shards]
        last = np.asarray(parts[-1]).copy()
        last[0, 0] = np.nextafter(last[0, 0], 2)
        parts[-1] = jax.device_put(last, parts[-1].sharding)
        weight.set(jax.make_array_from_single_device_arrays(
            array.shape, array.sharding, parts))
        return model

    return mock.patch.object(theirs.MeshEngine, "build", build)


def own_gradients(theirs):
    """No device is told of the others' rows: what is summed is its own."""
    from unittest import mock

    def made(self, shape, values_of):
        import jax

        def of_first(index):
            values = values_of(index)
            return values if index[0].start in (0, None) else 0 * values

        return jax.make_array_from_callback(
            shape, self.on("data"), of_first)

    return mock.patch.object(theirs.MeshEngine, "made", made)


def measured(bench, fault, subject, whole, rank):
    """What in_place.measured answers while a fault is in."""
    theirs = ports.meshes("jax")
    faults = planted.FAULTS["jax"] | {
        "drifted": drifted, "own gradients": own_gradients}
    with faults[fault](theirs):
        return in_place.measured(bench, subject, whole, rank)


@pytest.fixture(scope="module")
def ask():
    """What a mesh of four devices of JAX answers with a fault in it."""
    if absent := ports.absent("jax"):
        pytest.skip(f"not checked: {absent.reason}")
    these = processes.MeshProcesses(
        "jax", FOUR, in_place.config_of(AXES), in_place.rows_of(AXES))

    def answer(fault, whole=False):
        reply = these.ask(fault, measured, fault, Subject(
            "jax", mode="jit", mesh=FOUR), whole)
        assert not reply.failure, reply
        return reply.value

    yield answer
    these.close()


@pytest.mark.long(16)
def test_a_mesh_matches_where_it_lies(ask):
    found = ask("none", whole=True)
    for tally in found.values():
        assert not tally.wrong and 0 < tally.share < 0.1
    place, whole = found["place"], found["whole"]
    config = in_place.config_of(AXES)
    names = len(ports.engine("numpy").export(ports.engine("numpy").build(
        "transformer", config, in_place.probe_weights(config))))
    parts = 5 + config.n_encoder_layers + config.n_decoder_layers
    # Every device its part of every gradient, and of outputs its own row.
    assert place.shards == 4 * (names + parts)
    assert whole.shards == names + parts
    assert place.read + place.moved < whole.moved


@pytest.mark.long
@pytest.mark.parametrize("fault, words", [
    ("kernel exchanged", "output of encoder.layers.1"),
    ("drifted", "encoder.layers.1.feed_forward.inner.kernel: devices that "
                "should hold the same do not"),
    ("own gradients", "gradient of source_embedding.table")])
def test_a_fault_is_seen_where_it_lies(fault, words, ask):
    wrong = ask(fault)["place"].wrong
    assert words in wrong
    assert fault != "kernel exchanged" or not any(
        "output of" in one and "encoder.layers.1" not in one for one in wrong)


def test_a_truth_of_zeros_is_zeros():
    tally = in_place.ShardTally()
    tally.note("a", np.zeros(3), np.zeros(3), tolerances.FLOAT64_LIMIT)
    assert not tally.wrong
    tally.note("b", np.full(3, 1e-300), np.zeros(3), tolerances.FLOAT64_LIMIT)
    assert tally.wrong == ["b"]


def test_so_many_rows_are_drawn_however_large_the_mesh():
    class Engine:
        def part_gradients(self, model, path, inputs, cotangent, divided):
            return cotangent, {}

        def made(self, shape, values_of):
            return values_of((slice(None),) * 3)

    for count in (1, 4, 32):
        config = in_place.config_of({"data": count, "model": 1})
        batch = in_place.batch_of(config, count * in_place.ROWS)
        part = in_place.PartByPart(Engine(), None, batch).run(
            "encoder.norm", width=3, length=5)
        assert len(part.rows) == count
        assert set(part.rows // in_place.ROWS) == set(range(count))
        assert len(part.drawn) == min(count, in_place.DRAWN)
        assert set(part.drawn) <= set(part.rows)
        filled = np.flatnonzero(part.output.any(axis=(1, 2)))
        assert list(filled) == list(part.drawn)


# The command

def reply(**more):
    return workers.Reply({"place": in_place.ShardTally(
        shards=8, moved=2**21, seconds=0.5, **more)}, "", 1.0)


def replaced(monkeypatch, answer):
    monkeypatch.setattr(in_place, "run", lambda given, whole, on_mesh: [
        (mesh, answer) for mesh in given])


@pytest.mark.parametrize("answer, status, words", [
    (reply(), 0, "1.0 MiB"),
    (reply(wrong=["output of a"] * 3), 1, "output of a diverges"),
    (workers.Reply(None, "its process ended", 1.0), 1, "its process ended"),
    (workers.Reply(ports.NotChecked("jax", "jax is not installed"), "", 1.0),
     4, "not checked: jax is not installed")])
def test_what_is_said(answer, status, words, monkeypatch, tmp_path):
    replaced(monkeypatch, answer)
    file, page = tmp_path / "a.json", tmp_path / "a.md"
    result = invoke("check", "shards", "--mesh", "data=2", "--no-whole",
                    "--json", file, "--markdown", page)
    assert result.exit_code == status and words in result.output
    assert file.exists() == page.exists() == (status != 4)
    if status == 0:
        assert json.loads(file.read_text())["data=2,model=1"]["place"][
            "shards"] == 8
        assert "| 2 | data=2,model=1 | 8 | 1.0 MiB | 250 ms |" in (
            page.read_text())


@pytest.mark.parametrize("words, said", [
    ("data=4,model=3", "model=3 does not divide 4 heads"),
    ("data=2048", "at most 1024"), ("2x2", "axis of a mesh"),
    ("data=1", "is one device")])
def test_a_mesh_that_does_not_fit_is_refused(words, said, monkeypatch):
    monkeypatch.setattr(processes.MeshProcesses, "begin", None)
    result = invoke("check", "shards", "--mesh", words)
    assert result.exit_code == 2 and said in result.output + result.stderr
