"""What a number is of: an implementation, and everything about its run.

A row of a report, a cell of the matrix and a case of a test each say it by a
Subject, so that two of them can be told apart by one value.
"""

import dataclasses
import math
import re

from parity_io.errors import InputError, one_of

#: The axes of a mesh: batches are divided along one, weights along the other.
AXES = ("data", "model")

#: What Keras can run on.
BACKENDS = {"keras": ("tensorflow", "jax", "torch", "openvino")}


#: The sets of axes along which there are several devices.
DATA, MODEL, BOTH = {"data"}, {"model"}, {"data", "model"}

#: The ways in which a port runs on a mesh, and what each divides it along.
#: JAX has all devices in one process, torch one in each.
MESH_MODES: dict[str, dict] = {
    "torch": {"DDP": [DATA], "FSDP2": [DATA], "TP": [MODEL],
              "FSDP2 + TP": [BOTH]},
    "keras": {"DataParallel": [DATA], "ModelParallel": [DATA, MODEL, BOTH]},
    "jax": {"jit": [DATA, MODEL, BOTH], "sequence": [MODEL, BOTH]},
}
ONE_PROCESS = ("keras", "jax")

#: What Keras divides arrays on.
MESH_BACKENDS = {"keras": "jax"}

#: The modes that divide weights along "data" too, and those that divide none,
#: but along "model" the tokens of a sequence.
SHARDED, SEQUENCE = ("FSDP2", "FSDP2 + TP"), ("sequence",)

#: The modes with a runtime of their own.
ONNX, OPENVINO, LITE_RT = RUNTIMES = "ONNX Runtime", "OpenVINO", "LiteRT"

#: How else each implementation runs a model than as it is, on one device.
MODES: dict[str, tuple] = {
    "torch": ("aot_eager", "inductor", "export", ONNX, OPENVINO, LITE_RT),
    "keras on tensorflow": ("tf.function", "XLA", "SavedModel", ONNX),
    "keras on jax": ("jit",),
    "keras on torch": ("aot_eager",),
    "keras on openvino": (OPENVINO,),
    "jax": ("jit", "export", ONNX),
    "mlx": ("compile",),
}

#: A number of devices along an axis.
COUNT = re.compile("[1-9][0-9]{0,5}")


@dataclasses.dataclass(frozen=True)
class Subject:
    """What computed a number.

    Attributes:
        port: "numpy" or a port, by name.
        form: one of parity.ports.FORMS.
        mode: "eager", or another key of MODES in its targets/modes.py.
        dtype: what it computed in.
        device: where.
        mesh: how many devices along which axis, "data=2,model=2"; "" for one.
        backend: what Keras runs on; "" elsewhere.
    """

    port: str
    form: str = "readable"
    mode: str = "eager"
    dtype: str = "float64"
    device: str = "cpu"
    mesh: str = ""
    backend: str = ""

    @property
    def row(self):
        """The Subject without its dtype, which is a column in tables."""
        return dataclasses.replace(self, dtype="")

    @property
    def implementation(self):
        """The port, and what it runs on where that is a choice."""
        return f"{self.port} on {self.backend}" if self.backend else self.port

    def __str__(self):
        usual = Subject(self.port)
        return ", ".join([self.implementation, *(
            getattr(self, name) for name in (
                "form", "mode", "dtype", "device", "mesh")
            if getattr(self, name) not in ("", getattr(usual, name)))])


def of_json(words):
    """The Subject of a dict that JSON has; what an older file lacks is usual.
    """
    names = [field.name for field in dataclasses.fields(Subject)]
    return Subject(**{name: words[name] for name in names if name in words})


def mesh_axes(words):
    """{axis: devices} of a mesh in words, "data=2,model=2".

    Raises:
        InputError: it is not one.
    """
    axes = {}
    for part in words.replace(" ", ",").split(","):
        name, _, size = part.partition("=")
        one_of(name, AXES, "axis of a mesh")
        if name in axes or not COUNT.fullmatch(size):
            raise InputError(
                f"{words[:60]!r} is not a mesh; write data=2,model=2, each "
                "axis once and a whole number of devices.")
        axes[name] = int(size)
    if devices_of(axes) < 2:
        raise InputError(f"{words!r} is one device, and no mesh.")
    return {name: axes.get(name, 1) for name in AXES}


def mesh_words(axes):
    """A mesh in words, the one way that Targets have."""
    return ",".join(f"{name}={axes[name]}" for name in AXES)


def devices_of(axes):
    """How many devices a mesh has."""
    return math.prod(axes.values())


def mesh_modes(port, axes, backend=None):
    """The ways in which a port runs on a mesh of these axes.

    Args:
        backend: what Keras runs on; None for what it divides arrays on.
    """
    if backend not in (None, MESH_BACKENDS.get(port, "")):
        return []
    divided = {name for name, size in axes.items() if size > 1}
    return [mode for mode, those in MESH_MODES.get(port, {}).items()
            if divided in those]
