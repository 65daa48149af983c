"""Why an edit changes nothing, as functions that fail where it would.

Each looks at the contract, at the reference or at numbers, never at a port's
text.
"""

import functools
import importlib
import inspect
import itertools
import math

import numpy as np

from transformer_contract import random, weights
from transformer_contract.config import CHOICES, PRESETS, at_test_size
from transformer_contract.generation import GenerationConfig
from transformer_contract.schema import schema
from transformer_contract.trace import recording
from parity import ports
from parity.check import cases, golden
from parity.numerics import rounding

CONFIG = at_test_size(PRESETS["complete"])


def configs():
    """A config at test size of every word of every choice."""
    return [CONFIG.replace(source_vocab=CONFIG.target_vocab, **{field: word})
            for field, allowed in CHOICES.items() for word in allowed]


def of_reference(file):
    """A file of the reference."""
    return importlib.import_module(f"{ports.package('numpy')}.{file}")


def steps():
    """The reference's steps on the padded batch."""
    engine = ports.engine("numpy")
    return engine.forward(engine.build(
        "transformer", CONFIG, golden.shipped("complete")),
        *cases.padded_batch(CONFIG))


def one_width():
    """Queries, keys and values have one shape but for their lengths."""
    found = steps()
    for name, array in found.items():
        if name.endswith("attention.query"):
            for other in ("key", "value"):
                shape = found[name.removesuffix("query") + other].shape
                assert shape[-1] == array.shape[-1] == CONFIG.d_k
                assert shape[:2] == array.shape[:2]


def masked_values_do_not_count():
    """What stands at a masked key is no part of the context."""
    softmax = of_reference("attention").masked_softmax
    mask = np.array([True, False])
    scores = np.array([[0.3, 7.0]])
    assert softmax(scores, mask)[0, 1] == 0
    assert np.array_equal(softmax(scores, mask),
                          softmax(np.array([[0.3, -5.0]]), mask))


def one_dtype():
    """A model's arrays are all rounded to one dtype, and so are moments."""
    for dtype in ("float64", "float32"):
        assert {rounding.rounded(array, dtype).dtype.name for array in
                golden.shipped("complete").values()} == {dtype}


def wraps():
    """2³¹ and -2³¹ have the same 32 bits, as has what they are added to."""
    for other in (0, 1, 2**31 - 1, 2**32 - 1):
        assert (other + 2**31) % 2**32 == (other - 2**31) % 2**32
        assert other % 2**32 ^ 2**31 == (other ^ -2**31) % 2**32
    assert (-2)**31 == -2**31


def native_masks_are_any():
    """No value of a native mask is promised, and a float32 has 24 bits."""
    assert np.finfo(np.float32).nmant + 1 == 24
    for name in ports.known_ports():
        text = (ports.folder(name) / "dropout.py").read_text("utf-8")
        assert "not comparable" in text


@functools.cache
def one_device(*names):
    """What asserts that ports have no device but the processor here."""
    def proof():
        for engine in map(ports.engine, names):
            assert isinstance(engine, ports.NotChecked) or (
                engine.devices() == ["cpu"])
    return proof


def one_backend():
    """Keras computes with TensorFlow here, as it does unless told otherwise.

    What it does with another one is checked where KERAS_BACKEND names it.
    """
    engine = ports.engine("keras")
    assert isinstance(engine, ports.NotChecked) or (
        "tensorflow" in engine.versions())


def numbers_of_more_bits():
    """Comparing whole numbers does not depend on how many bits they have."""
    bits = random.bits(random.key(1), (99,))
    for rate in (0.1, 0.5, 1 - 2**-32):
        word = np.uint32(rate * 2**32)
        assert np.array_equal(bits >= word, bits >= np.uint64(word))


def ids_of_any_bits():
    """What PyTorch looks up by ids of 32 bits, of 64, and by a copy of them."""
    if ports.absent("torch"):
        return
    torch = importlib.import_module("torch")
    table, ids = torch.arange(12.0).reshape(4, 3), np.array([3, 0, 3, 1])
    for other in (ids.astype(np.int32), ids.copy()):
        assert torch.equal(
            torch.nn.functional.embedding(torch.from_numpy(ids), table),
            torch.nn.functional.embedding(torch.from_numpy(other), table))
    assert not any(np.dtype(kind).kind == "_" for kind in np.sctypeDict)


def arrays_are_kept():
    """The reference computes from the very array that it is given."""
    array = np.arange(6.0)
    assert ports.engine("numpy").to_native(array, "cpu") is array


def highest_is_exact():
    """What torch does when its precision is set."""
    if ports.absent("torch"):
        return
    torch = importlib.import_module("torch")
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_float32_matmul_precision("highest")
    assert not torch.backends.cuda.matmul.allow_tf32


def every_weight_is_loaded():
    """An array that is missing is refused."""
    for config in configs():
        shapes = schema(config)
        arrays = {name: np.ones(shape) for name, shape in shapes.items()}
        weights.check(arrays, shapes)
        for name in shapes:
            try:
                weights.check({key: array for key, array in arrays.items()
                               if key != name}, shapes)
            except ValueError:
                continue
            raise AssertionError(f"{name} may be missing")


def costs_memory_alone():
    """What is not differentiated has the same numbers; memory is not one."""


def asked_again():
    """Setting what is set already changes nothing."""
    array = np.ones(1)
    array.flags.writeable = array.flags.writeable
    assert array.flags.writeable


def sums_commute():
    """x + y is y + x to the bit, and a residual drops nothing by itself."""
    x, y = cases.values("x", 99), cases.values("y", 99)
    assert np.array_equal(x + y, y + x)


def by_name():
    """Arrays by name, or equal ones, are the same in any order."""
    assert {"m": 1, "v": 2} == {"v": 2, "m": 1}


def equality_commutes():
    """a != b is b != a, for ids and padding."""
    tokens = np.arange(5)
    assert np.array_equal(tokens != 3, 3 != tokens)


def one_place():
    """Of an axis of 1, the first place is the last."""
    array = np.ones((2, 3, 1))
    assert np.array_equal(array[..., 0], array[..., -1])


def found_in_any_dtype():
    """What torch.isin finds does not depend on the dtype of what is sought."""
    if ports.absent("torch"):
        return
    torch = importlib.import_module("torch")
    ids = torch.arange(5)
    for banned in ([], [1, 3], [0]):
        found = [torch.isin(ids, torch.tensor(banned, dtype=dtype)).tolist()
                 for dtype in (torch.int64, torch.int32, None)]
        assert found[0] == found[1] == found[2] == [
            number in banned for number in range(5)]


def below_one():
    """A search has written at least one token, the first."""
    written = range(1, 1 + GenerationConfig().max_tokens)
    assert 0 not in written and -1 not in written


def one_beside_one():
    """[B 1] is [B 1 1] wherever a new axis of 1 is put behind the first."""
    none = np.ones((3, 1), bool)
    assert none[:, :, None].shape == none[:, None, :].shape


def padding_is_last():
    """Padding is never an answer: the last p of every draw is 0."""
    engine = ports.engine("numpy")
    with recording(Heard()) as heard:
        engine.generate(
            engine.build("transformer", CONFIG, golden.shipped("complete")),
            cases.padded_batch(CONFIG).source,
            GenerationConfig(method="sample", max_tokens=3))
    assert heard.values and not any(p[:, -1].any() for p in heard.values)


class Heard:
    """Keeps each p of a search."""

    def __init__(self):
        self.values = []

    def record(self, module, name, value):
        """Keep it if it is one, and hand it on."""
        if name == "p":
            self.values.append(value)
        return value


def numbers_of_any_kind():
    """NumPy's whole numbers give the same keys as Python's."""
    for number in (0, 3, 2**32 + 7):
        assert np.array_equal(
            random.fold_in(random.key(1), np.int64(number)),
            random.fold_in(random.key(1), number))


def softmax_in_float32():
    """A softmax of 16 bits is torch's of float32, and so nearly of float64.

    Where they differ, float32's rounding has the last word: a share in the
    middle between two numbers of 16 bits.
    """
    if ports.absent("torch"):
        return
    torch = importlib.import_module("torch")
    given = torch.from_numpy(4 * cases.values("scores", 500, 40))
    for dtype in (torch.bfloat16, torch.float16):
        scores = given.to(dtype)
        own, single, double = (
            torch.softmax(scores.to(wide), dim=-1).to(torch.float32).to(dtype)
            for wide in (dtype, torch.float32, torch.float64))
        for other in (own, double):
            assert (other != single).double().mean() < 1e-3
            assert torch.allclose(other.double(), single.double(),
                                  2 * torch.finfo(dtype).eps, 1e-7)


def the_wider_dtype():
    """What torch makes of float32 with float64, and with whole numbers.

    A search has at least one step, in which that happens.
    """
    assert GenerationConfig().replace(max_tokens=1)
    try:
        GenerationConfig(max_tokens=0)
    except ValueError:
        pass
    else:
        raise AssertionError("a search may have no step")
    if ports.absent("torch"):
        return
    torch = importlib.import_module("torch")
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        assert torch.promote_types(dtype, torch.float32) == (
            torch.promote_types(torch.float32, dtype))
    zeros, wide = torch.zeros(3), torch.ones(3, dtype=torch.float64)
    assert (zeros + wide).dtype == torch.cat([zeros, wide]).dtype == wide.dtype
    for count in (1, 3, 2**24 + 1):
        shares = (wide.float() * 7) / count, wide.float() * 7 / torch.tensor(
            count)
        assert shares[0].dtype == shares[1].dtype == torch.float32
        assert torch.equal(*shares)
        one = wide.float()[0] * 7
        whole = torch.tensor(count)
        quotients = one / whole, one / whole.to(one.dtype)
        assert quotients[0].dtype == one.dtype and torch.equal(*quotients)


def last_axis():
    """Each takes the last axis if no other is named."""
    for name, module, function in (
            ("jax", "jax.nn", "softmax"), ("keras", "keras.ops", "softmax"),
            ("jax", "jax.numpy", "take_along_axis")):
        if not ports.absent(name):
            given = inspect.signature(
                getattr(importlib.import_module(module), function))
            assert given.parameters["axis"].default == -1


def the_last_place_of_jax():
    """Of an axis of 1, JAX's place 1 is its place 0."""
    if not ports.absent("jax"):
        x = importlib.import_module("jax.numpy").arange(6).reshape(6, 1)
        assert np.array_equal(x[..., 1], x[..., 0])


def whole_numbers_of_jax():
    """A number beside uint32 takes that dtype, and wraps as it does."""
    if not ports.absent("jax"):
        library = importlib.import_module("jax.numpy")
        x = library.array([2**32 - 1, 3], library.uint32)
        one, other = x + library.uint32(5), x + 5
        assert one.dtype == other.dtype and np.array_equal(one, other)


def axes_in_any_order():
    """Whole numbers are summed exactly, over axes in any order."""
    array = cases.values("any", 2, 3, 4) > 0
    assert np.array_equal(array.sum(axis=(1, 2)), array.sum(axis=(2, 1)))


def one_at_the_limit():
    """What is as long as the limit is scaled by 1."""
    for limit in (0.02, 1.0, 1e6):
        assert limit / limit == 1


def exclusive_or_commutes():
    """a ^ b is b ^ a."""
    for a, b in itertools.product((0, 1, 2**31, 2**32 - 1), repeat=2):
        assert a ^ b == b ^ a


def ends_of_the_interval():
    """The number above -1 is the same seen from 0 and from 1."""
    assert math.nextafter(-1.0, 0.0) == math.nextafter(-1.0, 1.0)
    assert math.nextafter(-1.0, 0.0) + 1 == 2**-53


def caches_grow_together():
    """Every layer is given each token once."""
    caches = of_reference("cache").new_caches(
        ports.engine("numpy").build(
            "transformer", CONFIG, golden.shipped("complete")), 1, 3)
    key = np.ones((1, CONFIG.n_heads, 1, CONFIG.d_k))
    for _ in range(2):
        for cache in caches:
            cache.extend(key, key)
    assert {cache.written for cache in caches} == {2}
