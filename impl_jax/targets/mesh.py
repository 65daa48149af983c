"""The engine of a model on a mesh: what is not here is the fast engine's.

Arrays say how they are divided, and XLA adds what devices have to tell each
other. Steps inside a compiled function are not seen.
"""

import jax
import numpy as np
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from transformer_contract import fast_forms
from transformer_contract.batch import check_inputs, check_pairs, check_search
from transformer_contract.dropping import dropping
from parity_io.errors import InputError, plural
from transformer_contract.sharding import divided_axis
from impl_jax import parts
from impl_jax.engine import drawn, export, to_numpy
from impl_jax.fast import engine, train
from impl_jax.loss import cross_entropy
from impl_jax.parameters import leaves, modules, paths

NAME = "jax"


def join(rank, size, file):
    """All devices are of one process: there is nobody to meet."""


class MeshEngine:
    """An engine whose models live on a mesh.

    Args:
        axes: {"data": devices, "model": devices}.
        mode: "jit", or "sequence": then weights are whole everywhere, and
            along "model" the tokens of a sequence are divided, so that each
            device attends from its own queries to all keys.

    Attributes:
        rows_read, tokens_read: how many a device has read last.

    Raises:
        InputError: there are not so many devices.
    """

    NAME = NAME
    FUSED = {"gradients"}

    def __init__(self, axes, mode):
        self.rows_read, self.tokens_read, self.parts = 0, 0, {}
        self.divides_tokens = mode == "sequence"
        count = axes["data"] * axes["model"]
        there = jax.devices("cpu")
        if len(there) < count:
            raise InputError(
                f"JAX has {plural(len(there), 'device')} here, and the "
                f"mesh has {count}.")
        self.mesh = Mesh(
            grid_of(there[:count], axes["data"], axes["model"]),
            ("data", "model"))

    def __getattr__(self, name):
        return getattr(engine, name)

    def on(self, *axes):
        """A sharding by the mesh's axis, or None, of each axis of an array."""
        return NamedSharding(self.mesh, PartitionSpec(*axes))

    def place(self, name):
        """The sharding of a weight."""
        axis = divided_axis(name)
        if axis is None or self.divides_tokens:
            return self.on()
        return self.on(*[None] * axis, "model")

    def rows(self, arrays, axis=0):
        """Arrays divided along "data", by one of their axes, and their tokens
        along "model" if these are divided."""
        arrays = [jax.device_put(array, self.on(
            *[None] * axis, "data", *self.tokens(array.shape[axis + 1:])))
            for array in arrays]
        self.rows_read = arrays[0].addressable_shards[0].data.shape[axis]
        if len(arrays) > 1:
            self.tokens_read = arrays[1].addressable_shards[0].data.shape[-1]
        return arrays

    def tokens(self, shape):
        """How axes after a batch's are divided: the first that is no 1.

        A length that the mesh does not divide is whole everywhere.
        """
        place = next((i for i, size in enumerate(shape) if size > 1), 0)
        if not (self.divides_tokens and shape) or (
                shape[place] % self.mesh.shape["model"]):
            return ()
        return *[None] * place, "model"

    def copies(self, model):
        """How often all devices together hold each value of a weight, by name.
        """
        return {weight.name: sum(shard.data.size for shard
                                 in weight.get().addressable_shards)
                / weight.get().size for weight in leaves(model)}

    def build(self, component, config, weights, dtype="float64",
              device="cpu"):
        """Make a model and divide its weights."""
        model = engine.build(component, config, weights, dtype, device)
        for weight in leaves(model):
            weight.set(jax.device_put(
                weight.get(), self.place(weight.name)))
        return model

    def predict(self, model, *inputs):
        """A Transformer's output alone: [B T V]."""
        check_inputs(model.config, *inputs)
        return to_numpy(engine.answer(model, *self.rows(inputs)))

    def generate(self, model, source, settings, rows=None):
        """Find targets of sources; see the reference's engine."""
        rows = check_search(model.config, source, settings, rows)
        (source,), (rows,) = self.rows([source]), self.rows([rows])
        with jax.enable_x64(True):
            if fast_forms.compiles(model.config, settings):
                tokens, scores = engine.SEARCHES[settings.method](
                    model, source, settings, rows)
            else:
                tokens, scores = parts.search(model.config, settings)(
                    model, source, settings, rows).run()
        return {"tokens": to_numpy(tokens), "scores": to_numpy(scores)}

    def weights(self, model):
        """{name: array} of a model, left where they lie."""
        return {weight.name: weight.get() for weight in leaves(model)}

    def shards(self, array):
        """Yield (index, values) of each device's part of an array."""
        for shard in array.addressable_shards:
            yield shard.index, np.asarray(shard.data)

    def made(self, shape, values_of):
        """Rows that each device makes for itself.

        Args:
            values_of: index, a slice for each axis -> values.
        """
        return jax.make_array_from_callback(
            shape, self.on("data"), values_of)

    def part_gradients(self, model, path, inputs, cotangent, divided):
        """A part's output, and the gradient of Σ cotangent · output by its
        weights, by their names in the model; all left where they lie.

        Args:
            inputs: as its call takes them, on the mesh.
            cotangent: like the output.
            divided: whether the output's last axis is divided, as logits are.
        """
        part = dict(modules(model))[path]
        graph, weights, rest = nnx.split(part, nnx.Param, ...)
        if (graph, divided) not in self.parts:
            def compute(weights, inputs, cotangent):
                output, back = jax.vjp(
                    lambda weights: nnx.merge(graph, weights, rest)(*inputs),
                    weights)
                return output, back(cotangent)[0]

            self.parts[graph, divided] = jax.jit(compute, out_shardings=(
                self.on("data", None, "model" if divided else None),
                jax.tree.map(lambda weight: weight.sharding, weights)))
        output, gradients = jax.block_until_ready(
            self.parts[graph, divided](weights, inputs, cotangent))
        return output, {
            f"{path}.{gradient.name}": gradient.get() for gradient in leaves(
                nnx.merge(graph, gradients, rest))}

    def forward(self, model, *inputs, key=None):
        """The output, as the only step that is seen."""
        return {"output": self.predict(model, *inputs)}

    def gradients(self, model, source, target, source_mask, target_mask,
                  labels, key=None):
        """The loss and its gradient by every weight."""
        config, inputs = model.config, (source, target, source_mask,
                                        target_mask)
        check_inputs(config, *inputs)
        graph, weights, rest = nnx.split(model, nnx.Param, ...)
        keep = {name: jax.device_put(to_numpy(mask), self.on("data"))
                for name, mask in drawn(model, source, target, key).items()}

        @jax.jit
        def compute(weights, keep, *inputs):
            *inputs, labels = inputs

            def loss_of(weights):
                model = nnx.merge(graph, weights, rest)
                with dropping(paths(model), keep):
                    output = model(*inputs)
                return cross_entropy(
                    output, labels, config.pad_id, config.label_smoothing,
                    config.smoothing)

            return jax.value_and_grad(loss_of)(weights)

        loss, gradients = compute(
            weights, keep, *self.rows((*inputs, labels)))
        return to_numpy(loss), export(nnx.merge(graph, gradients, rest))

    def trainer(self, model, training):
        """A Trainer of a Transformer, at step 0; moments lie as weights do."""
        return train.Trainer(model, training)

    def resume(self, trainer, step, moments):
        """Have a Trainer go on after ``step``, from moments as exported."""
        trainer.step = step
        for kind, arrays in (("m", trainer.m), ("v", trainer.v)):
            for i, weight in enumerate(leaves(trainer.model)):
                arrays[i] = jax.device_put(
                    moments[f"{kind}.{weight.name}"], self.place(weight.name))

    def train_step(self, trainer, sources, targets):
        """Make one step on A batches; see the reference's engine.

        Targets have a token more than is read, which no mesh divides too: of
        these the tokens are whole everywhere.
        """
        check_pairs(trainer.model.config, sources, targets)
        (sources,), targets = self.rows([sources], axis=1), jax.device_put(
            targets, self.on(None, "data"))
        loss, norm, learning_rate = trainer.train_step(sources, targets)
        return {"loss": to_numpy(loss), "norm": to_numpy(norm),
                "rate": np.asarray(learning_rate)}


def grid_of(devices, *shape):
    """Devices in a grid."""
    grid = np.empty(len(devices), object)
    grid[:] = devices
    return grid.reshape(shape)
