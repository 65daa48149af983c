"""The engine of a model on a mesh: what is not here is the fast engine's.

keras.distribution says where variables and inputs lie, and XLA adds what
devices have to tell each other: it divides on JAX alone. Steps inside a
compiled function are not seen.
"""

import contextlib
import weakref

import keras
import numpy as np
from keras.distribution import (
    DataParallel, DeviceMesh, LayoutMap, ModelParallel, TensorLayout,
    distribute_tensor, list_devices)

from transformer_contract import fast_forms
from transformer_contract.batch import check_inputs, check_pairs, check_search
from transformer_contract.dropping import dropping
from parity_io.errors import InputError, plural
from transformer_contract.sharding import divided_axis
from impl_keras import parts
from impl_keras.engine import drawn, home, on, ours, to_native, to_numpy
from impl_keras.fast import engine, search, train
from impl_keras.gradients import value_and_gradients
from impl_keras.loss import cross_entropy
from impl_keras.parameters import leaves, paths

NAME = "keras"


def join(rank, size, file):
    """All devices are of one process: there is nobody to meet."""


class MeshEngine:
    """An engine whose models live on a mesh.

    Args:
        axes: {"data": devices, "model": devices}.
        mode: "DataParallel" or "ModelParallel".

    Attributes:
        rows_read: how many rows a device has read last.
        calls: a model -> its call as JAX compiles it.

    Raises:
        InputError: there are not so many devices.
    """

    NAME = NAME
    FUSED = {"gradients"}

    def __init__(self, axes, mode):
        self.rows_read, self.mode = 0, mode
        self.calls = weakref.WeakKeyDictionary()
        count, there = axes["data"] * axes["model"], list_devices("cpu")
        if len(there) < count:
            raise InputError(
                f"Keras has {plural(len(there), 'device')} here, and the "
                f"mesh has {count}.")
        # keras: DataParallel warns of a mesh of two axes.
        names = ["data"] if mode == "DataParallel" else ["data", "model"]
        self.mesh = DeviceMesh(
            [axes[name] for name in names], names, there[:count])

    def __getattr__(self, name):
        return getattr(engine, name)

    def distribution(self, layouts):
        """What places variables: {path: TensorLayout} of those divided."""
        if self.mode == "DataParallel":
            return DataParallel(device_mesh=self.mesh)
        placed = LayoutMap(self.mesh)
        for path, layout in layouts.items():
            placed[path] = layout
        return ModelParallel(layout_map=placed, batch_dim_name="data")

    def layouts(self, model):
        """{path: TensorLayout} of the variables that are divided."""
        found = {}
        for weight in leaves(model):
            axis, variable = divided_axis(weight.name), weight.get()
            if axis is not None and self.mode == "ModelParallel":
                axes = [None] * len(variable.shape)
                axes[axis] = "model"
                found[variable.path] = TensorLayout(axes, self.mesh)
        return found

    def build(self, component, config, weights, dtype="float64",
              device="cpu"):
        """Make a model whose variables lie where a LayoutMap says.

        A LayoutMap is by paths, which Keras makes up and counts: a first model
        tells them, and the second has the same.
        """
        given = component, config, weights, dtype, device
        keras.utils.clear_session(free_memory=False)
        layouts = self.layouts(engine.build(*given))
        keras.utils.clear_session(free_memory=False)
        distribution = self.distribution(layouts)
        with distribution.scope():
            model = engine.build(*given)
        model.distribution = distribution
        return model

    @contextlib.contextmanager
    def on(self, model):
        """Compute as a model is distributed."""
        with on(home(model)), model.distribution.scope():
            yield

    def compiled(self, model, function):
        """A function of arrays as JAX compiles it; weights are arguments."""
        import jax
        variables = [weight.get() for weight in leaves(model)]

        @jax.jit
        def of_values(values, *inputs):
            with keras.StatelessScope(zip(variables, values)):
                return function(*inputs)

        return lambda *inputs: of_values(
            [variable.value for variable in variables], *inputs)

    def rows(self, arrays, axis=0):
        """Arrays divided along "data", by one of their axes."""
        placed = [distribute_tensor(
            to_native(array, "cpu"), TensorLayout(
                [*[None] * axis, "data", *[None] * (array.ndim - axis - 1)],
                self.mesh)) for array in map(np.asarray, arrays)]
        self.rows_read = placed[0].addressable_shards[0].data.shape[axis]
        return placed

    def copies(self, model):
        """How often all devices together hold each value of a weight, by name.
        """
        return {weight.name: sum(
            shard.data.size for shard in weight.get().value.addressable_shards)
            / weight.get().value.size for weight in leaves(model)}

    def predict(self, model, *inputs):
        """A Transformer's output alone: [B T V]."""
        check_inputs(model.config, *inputs)
        if model not in self.calls:
            self.calls[model] = self.compiled(model, model)
        with self.on(model):
            return to_numpy(self.calls[model](*self.rows(inputs)))

    def forward(self, model, *inputs, key=None):
        """The output, as the only step that is seen."""
        return {"output": self.predict(model, *inputs)}

    def generate(self, model, source, settings, rows=None):
        """Find targets of sources; see the reference's engine."""
        rows = check_search(model.config, source, settings, rows)

        def find(source):
            if fast_forms.compiles(model.config, settings):
                return search.run(model, source, settings, rows)
            return parts.search(model.config, settings)(
                model, source, settings, rows).run()

        with self.on(model):
            (source,) = self.rows([source])
            tokens, scores = find(source)
            return {"tokens": to_numpy(tokens).astype(np.int64),
                    "scores": to_numpy(scores)}

    def gradients(self, model, source, target, source_mask, target_mask,
                  labels, key=None):
        """The loss and its gradient by every weight."""
        config, inputs = model.config, (source, target, source_mask,
                                        target_mask)
        check_inputs(config, *inputs)
        weights = list(leaves(model))
        keep = drawn(model, source, target, key)

        def both(*given):
            *given, labels = given
            inputs, keep = given[:4], dict(zip(names, given[4:]))

            def loss_of():
                with dropping(paths(model), keep):
                    output = model(*inputs)
                return cross_entropy(
                    output, labels, config.pad_id, config.label_smoothing,
                    config.smoothing)

            return value_and_gradients(
                loss_of, [weight.get() for weight in weights])

        names = list(keep)
        with self.on(model):
            loss, gradients = self.compiled(model, both)(*self.rows(
                [*inputs, *map(to_numpy, keep.values()), labels]))
        return to_numpy(loss), {
            weight.name: ours(weight, gradient)
            for weight, gradient in zip(weights, gradients)}

    def trainer(self, model, training):
        """A MeshTrainer of a Transformer, at step 0."""
        with self.on(model):
            return MeshTrainer(model, training)

    def resume(self, trainer, step, moments):
        """Have a MeshTrainer go on after ``step``, from moments as exported.
        """
        trainer.step = step
        for kind, held in (("m", trainer.m), ("v", trainer.v)):
            for weight, moment in zip(leaves(trainer.model), held):
                value = weight.to_theirs(moments[f"{kind}.{weight.name}"])
                moment.assign(distribute_tensor(
                    to_native(value, "cpu"), weight.get().value.sharding))

    def train_step(self, trainer, sources, targets):
        """Make one step on A batches; see the reference's engine."""
        check_pairs(trainer.model.config, sources, targets)
        with self.on(trainer.model):
            loss, norm, learning_rate = trainer.train_step(
                *self.rows((sources, targets), axis=1))
        return {"loss": to_numpy(loss), "norm": to_numpy(norm),
                "rate": np.asarray(learning_rate)}


class MeshTrainer(train.Trainer):
    """See impl_keras.fast.train; moments lie as weights do."""

    def __init__(self, model, training):
        super().__init__(model, training)
        import jax
        weights = [weight.get() for weight in leaves(model)]
        held = [*weights, *self.m, *self.v]
        for moments in (self.m, self.v):
            for weight, moment in zip(weights, moments):
                moment.assign(distribute_tensor(
                    moment.value, weight.value.sharding))

        def compute(values, *given):
            with keras.StatelessScope(zip(held, values)) as scope:
                numbers = super(MeshTrainer, self)._compute(*given)
            return numbers, [scope.get_current_value(variable)
                             for variable in held]

        step = jax.jit(compute, donate_argnums=0, out_shardings=(
            None, [variable.value.sharding for variable in held]))

        def run(*given):
            numbers, values = step(
                [variable.value for variable in held], *given)
            for variable, value in zip(held, values):
                variable.assign(value)
            return numbers

        self.compiled = run
