"""torch.compile, torch.export and jitted functions beside the model."""

import pytest

import parity
from parity_tests.support.engines import usable


def told(way, **s):
    """What is told of a model that is compiled."""
    usable("torch")
    from benchmarks.deployed.compiled import compiled, eager
    from benchmarks.deployed.sides import asked
    return asked(eager, lambda: compiled(way, **s))


@pytest.mark.parametrize("way", ["eager", "export", "part"])
def test_a_sound_model(way):
    answer = told(way)
    assert answer.status == 0 and not answer.causes


@pytest.mark.parametrize("way", ["eager", "export"])
def test_another_epsilon(way):
    answer = told(way, epsilon=1e-3)
    assert answer.status == 1 and "epsilon" in answer.causes[0]
    assert answer.places[0].startswith("torch_net.py:")


def test_a_backend_that_computes_another_thing():
    usable("torch")
    from benchmarks.deployed.compiled import BACKENDS
    answer = told(BACKENDS["gelu by tanh"][0])
    assert "gelu by tanh in b" in answer.causes[0]
    assert answer.places[0].startswith("torch_net.py:")


def test_a_jitted_function():
    usable("jax")
    from benchmarks.deployed import jitted
    from benchmarks.deployed.sides import asked
    assert asked(lambda: jitted.plain(""),
                 lambda: jitted.jit("")).status == 0
    answer = asked(lambda: jitted.plain(""), lambda: jitted.jit("tanh"))
    assert answer.status == 1 and "gelu" in answer.causes[0]


def test_in_one_call():
    """``parity.diff`` takes what is compiled beside what is not."""
    usable("torch")
    import torch
    from benchmarks.deployed.torch_net import inputs, net
    x = inputs()
    assert parity.diff(net(), torch.export.export(net(), x), *x).status == 0
    cause, = parity.diff(net(), torch.compile(
        net(activation="tanh"), backend="eager"), *x).explanations
    assert "gelu by tanh in b" in cause.text()


def test_a_quick_sample_of_the_bench_of_caches():
    usable("torch")
    from benchmarks.deployed.case import RIGHT, SILENT, outcome_of, table
    from benchmarks.deployed.caches import cases
    chosen = [case for case in cases() if case.name in (
        "p_anew", "m_offset", "reorder True")]
    outcomes = [*map(outcome_of, chosen)]
    assert [each.fate for each in outcomes] == [RIGHT, RIGHT, SILENT]
    assert "| caches | 2 | 2 |" in "\n".join(
        table([each.plain for each in outcomes]))


@pytest.mark.long
def test_the_inner_outputs_of_a_lite_file():
    usable("keras")
    import keras
    if keras.config.backend() != "tensorflow":
        pytest.skip("not checked: LiteRT files are made with TensorFlow")
    import functools

    from benchmarks.deployed.lite import converted, live
    from benchmarks.deployed.sides import asked
    assert asked(live, converted, True).status == 0
    answer = asked(live, functools.partial(converted, epsilon=1e-2), True)
    assert answer.status == 1 and answer.places == ["norm1"]


@pytest.mark.long
def test_the_inner_outputs_of_openvino(tmp_path):
    """The convolution and the norm behind it are one operation there."""
    usable("torch")
    ov = pytest.importorskip(
        "openvino", reason="not checked: openvino is not installed")
    from benchmarks.deployed.torch_net import inputs, net
    x = [each.float() if each.is_floating_point() else each
         for each in inputs()]

    def converted(**s):
        return ov.convert_model(net(**s).float(), example_input=tuple(x))
    ov.save_model(converted(), tmp_path / "m.xml", compress_to_fp16=False)
    for sound in (converted(), tmp_path / "m.xml"):
        assert parity.diff(net().float(), sound, *x).status == 0
    for place, s in (("block.norm1", {"epsilon": 1e-2}),
                     ("block.outer", {"activation": "tanh"})):
        comparison = parity.diff(net().float(), converted(**s), *x)
        assert comparison.status == 1
        assert [each.a for each in comparison.explanations] == [place]


@pytest.mark.parametrize("name, runtime", [
    ("m.pt2", "torch.export"), ("m.tflite", "LiteRT"), ("m.xml", "OpenVINO")])
def test_a_file_that_is_no_model(tmp_path, name, runtime, capfd):
    """One sentence, and nothing that a library writes beside it."""
    from parity_io.errors import InputError
    from parity.exported import opening
    from parity.exported.model import NotInstalled
    usable("torch")
    (tmp_path / name).write_bytes(b"no model")
    try:
        with pytest.raises(InputError, match=f"that {runtime} can read"):
            opening.read(tmp_path / name, (), {})
    except NotInstalled as reason:
        pytest.skip(f"not checked: {reason}")
    assert capfd.readouterr().err == ""
