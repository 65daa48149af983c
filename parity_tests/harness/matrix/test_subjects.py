"""What a number is of: its words, its JSON, and meshes in words."""

import dataclasses
import json

import pytest

from parity_io.errors import InputError
from parity.subjects import Subject, devices_of, mesh_axes, mesh_words, of_json


@pytest.mark.parametrize("one, words", [
    (Subject("torch"), "torch"),
    (Subject("torch", mode="export", dtype="float32"),
     "torch, export, float32"),
    (Subject("keras", backend="jax", device="cuda"), "keras on jax, cuda"),
    (Subject("jax", "fast", mesh="data=2,model=1"),
     "jax, fast, data=2,model=1")])
def test_a_subject_says_what_is_not_usual(one, words):
    assert str(one) == words


def test_a_target_of_json_is_itself():
    one = Subject("keras", "fast", "XLA", "float32", "cpu", "", "tensorflow")
    assert of_json(json.loads(json.dumps(dataclasses.asdict(one)))) == one


def test_what_an_older_report_says_is_read():
    """Before there were modes and meshes, all was eager and on one device."""
    assert of_json({"preset": "lesson", "port": "torch", "form": "fast",
                    "dtype": "float32", "device": "cpu"}) == Subject(
        "torch", "fast", dtype="float32")


@pytest.mark.parametrize("words, axes", [
    ("data=2,model=2", {"data": 2, "model": 2}),
    ("model=2", {"data": 1, "model": 2}),
    ("model=4 data=2", {"data": 2, "model": 4})])
def test_a_mesh_in_words(words, axes):
    assert mesh_axes(words) == axes
    assert mesh_axes(mesh_words(axes)) == axes
    assert devices_of(axes) == axes["data"] * axes["model"]


@pytest.mark.parametrize("words", [
    "", "2x2", "data", "data=", "data=0", "data=-1", "data=two", "data=2.0",
    "data=2,data=2", "rows=2", "data=²", "data=1e3", "data=٢",
    "data=" + "9" * 5000])
def test_no_mesh_is_refused_in_a_sentence(words):
    with pytest.raises(InputError) as error:
        mesh_axes(words)
    assert len(str(error.value)) < 300
