"""A folder of arrays and names: read, compared, and refused."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from parity_io.errors import InputError
from parity.comparison.compare import compare
from parity.dumps.read import load
from parity.tracing import folder
from parity.tracing.trace import WHOLE
from benchmarks.dumps.writing import model


def write(folder, arrays, names=True):
    """Arrays as .npy files, with names.txt."""
    for name, array in arrays.items():
        path = folder / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, array)
    if names:
        (folder / "names.txt").write_text("\n".join(
            ["parity dump 1", "# of the small model", *arrays]) + "\n")
    return folder


@pytest.fixture
def dump(tmp_path):
    return write(tmp_path / "a", model())


def test_names_say_what_is_what(dump):
    trace = load(dump)
    assert [step.path for step in trace.steps] == [
        "embed", "h.0.norm", "h.0.mlp", "h.0", "h.1.norm", "h.1.mlp", "h.1",
        WHOLE]
    assert [*trace.inputs] == ["ids"] and trace.dtype == "float32"
    assert [*trace.step(WHOLE).outputs] == ["logits"]
    assert [*trace.parameters] == ["embed", "h.0", "h.1", "head"]


def test_sides_of_a_step(tmp_path):
    x = np.ones((2, 3))
    np.savez(tmp_path / "all.npz", **{
        "attn/input": x, "attn/inputs.mask": x, "attn/output.0": x,
        "attn/output.1": 2 * x, "/layer.1/Add_output_0": 3 * x})
    trace = load(tmp_path)
    first, second, whole = trace.steps
    assert [*first.inputs] == ["input", "mask"]
    assert [*first.outputs] == ["output.0", "output.1"]
    assert second.path == "layer.1.Add_output_0" and not whole.outputs
    assert "outputs/NAME" in trace.notes[0]


def test_formats_are_alike(dump, tmp_path):
    arrays = model()
    np.savez(tmp_path / "b.npz", **arrays)
    save_file({name: np.ascontiguousarray(array)
               for name, array in arrays.items()},
              tmp_path / "c.safetensors")
    for other in ("b.npz", "c.safetensors"):
        comparison = compare(load(dump), load(tmp_path / other))
        assert comparison.verdict == "MATCH".lower(), comparison.sentence()
    assert "names.txt" in " ".join(load(tmp_path / "c.safetensors").notes)


def test_a_fault_has_its_place(dump, tmp_path):
    other = write(tmp_path / "b", model(eps=1e-2))
    comparison = compare(load(dump), load(other))
    assert comparison.status == 1 and comparison.first.a == "h.1.norm"


def test_bytes_of_another_order_are_read(dump, tmp_path):
    other = write(tmp_path / "b", {
        name: array.astype(array.dtype.newbyteorder(">"))
        for name, array in model().items()})
    assert compare(load(dump), load(other)).status == 0


def renamed(folder):
    (folder / "h.0.mlp.npy").rename(folder / "h.0.mlpp.npy")


def cut(folder):
    path = folder / "h.0.mlp.npy"
    path.write_bytes(path.read_bytes()[:-10])


def surplus(folder):
    np.save(folder / "h.9.npy", np.ones(3))


def version(folder):
    path = folder / "names.txt"
    path.write_text(path.read_text().replace("dump 1", "dump 2"))


def headless(folder):
    (folder / "names.txt").write_text("embed\n")


def twice(folder):
    with open(folder / "names.txt", "a") as file:
        file.write("embed\n")


def objects(folder):
    np.save(folder / "embed.npy", np.array([{}, None]), allow_pickle=True)


def texts(folder):
    np.save(folder / "embed.npy", np.array(["a", "b"]))


def raw(folder):
    import ml_dtypes
    np.save(folder / "embed.npy", np.ones(3, ml_dtypes.bfloat16))


def two_homes(folder):
    np.savez(folder / "more.npz", embed=np.ones(3))


@pytest.mark.parametrize("spoil, words", [
    (renamed, "lists 'h.0.mlp', and no file has it, though one has 'h.0.mlpp"),
    (lambda folder: (folder / "embed.npy").unlink(), "no file has it; write"),
    (cut, "is damaged or cut short"), (surplus, "does not list 'h.9'"),
    (version, "is of version '2' and this program reads 1"),
    (headless, "the first line of"), (twice, "lists 'embed' twice"),
    (objects, "cannot be read as npy"), (texts, "which is no number"),
    (raw, "as numpy.save writes bfloat16"),
    (two_homes, "leave one of them out")])
def test_what_is_wrong_is_told_in_a_sentence(dump, spoil, words):
    spoil(dump)
    with pytest.raises(InputError) as told:
        load(dump)
    assert words in str(told.value) and str(told.value).endswith(".")


@pytest.mark.parametrize("change, words", [
    (lambda name, array: array[:, :5] if name == "inputs/ids" else array,
     "different inputs"),
    (lambda name, array: array + (name == "inputs/ids"), "different inputs"),
    (lambda name, array: array.astype(np.float64)
     if array.dtype.kind == "f" else array, "trace both in one precision")])
def test_what_does_not_belong_together(dump, tmp_path, change, words):
    other = write(tmp_path / "b", {
        name: change(name, array) for name, array in model().items()})
    with pytest.raises(InputError, match=words):
        compare(load(dump), load(other))


@pytest.mark.parametrize("name", ["missing", "."])
def test_what_is_no_dump(tmp_path, name):
    with pytest.raises(InputError, match="there is no|is no dump"):
        load(tmp_path / name)


def test_what_the_inputs_were_made_of(dump, tmp_path):
    other = write(tmp_path / "b", {
        name: array + (name == "inputs/ids")
        for name, array in model().items()})
    for home, text in ((dump, "the dog"), (other, "the Dog")):
        (home / "raw").mkdir()
        (home / "raw" / "text.txt").write_text(text)
    with pytest.raises(InputError, match="texts differ at letter 4: 'dog' in "
                       "a, 'Dog' in b: a's text is b's lower-cased"):
        compare(load(dump), load(other))


def test_a_dump_of_ours_keeps_it(dump, tmp_path):
    trace = load(dump)
    trace.raw |= {"text": "a", "pieces": {3: "x"}, "image": np.ones((2, 2))}
    folder.dump(trace, tmp_path / "ours")
    raw = load(tmp_path / "ours").raw
    assert raw["text"] == "a" and raw["pieces"] == {3: "x"}
    assert raw["image"].shape == (2, 2)
