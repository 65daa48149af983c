"""How Keras is asked what parity_tests/ports/test_citizen.py asks."""

import copy
import pickle

import h5py
import keras

from impl_keras.layer_norm import LayerNorm

NAME, PACKAGE, FRAMEWORK = "keras", "impl_keras", "import keras"

#: What makes an array of the framework.
ARRAY = "keras.ops.convert_to_tensor"


def new(config, seed=0):
    """A new model by Keras' own random numbers."""
    from impl_keras import Transformer
    keras.utils.set_random_seed(seed)
    return Transformer(config)


def ids(array):
    """Whole numbers as a tensor."""
    return keras.ops.convert_to_tensor(array, "int32")


def numpy(tensor):
    """A tensor as an array."""
    return keras.ops.convert_to_numpy(tensor)


def logits(model, source, target, training=False, **masks):
    """What a model answers, dropping if it trains."""
    return numpy(model(source, target, training=training, **masks))


def dropped(array, rate):
    """What is left of an array in training."""
    from impl_keras.dropout import Dropout
    return numpy(Dropout(rate)(array, training=True))


def native_round_trip(model, config, path):
    """New models that have read what Keras has written."""
    model.save_weights(path / "model.weights.h5")
    by_weights = new(config, seed=1)
    by_weights.load_weights(path / "model.weights.h5")
    model.save(path / "model.keras")
    by_list = new(config, seed=2)
    by_list.set_weights(model.get_weights())
    return {"load_weights": by_weights, "set_weights": by_list,
            "load_model": keras.saving.load_model(path / "model.keras")}


def native_refusals(model, other_config, path):
    """What must not be read: another model's file, a cut one, a renamed one."""
    file, cut, renamed = (
        path / f"{name}.weights.h5" for name in ("whole", "cut", "renamed"))
    model.save_weights(file)
    cut.write_bytes(file.read_bytes()[:-1000])
    renamed.write_bytes(file.read_bytes())
    with h5py.File(renamed, "a") as opened:
        opened.move("encoder/layers/encoder_layer/feed_forward/inner",
                    "encoder/layers/encoder_layer/feed_forward/outside")
    return {
        "another config": lambda: new(other_config).load_weights(file),
        "a cut file": lambda: new(model.config).load_weights(cut),
        "a renamed array": lambda: new(model.config).load_weights(renamed)}


def copies(model):
    """Copies in each way that Keras and Python have."""
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    return {"deepcopy": copy.deepcopy(model), "clone_model": clone,
            "pickle": pickle.loads(pickle.dumps(model))}


def compiled(model):
    """The call, compiled by TensorFlow and by XLA, for known lengths or not;
    it takes ids, and both masks or none."""
    if keras.backend.backend() != "tensorflow":
        return {}
    import tensorflow as tf

    def call(*inputs):
        return model(*inputs)

    def of_any_length(*inputs):
        return tf.function(call, [
            tf.TensorSpec([None if size > 1 else 1 for size in each.shape],
                          each.dtype) for each in inputs])(*inputs)

    ways = {"tf.function": tf.function(call),
            "tf.function of any length": of_any_length,
            "XLA": tf.function(call, jit_compile=True)}
    return {way: lambda source, target, *masks, function=function: numpy(
        function(ids(source), ids(target),
                 *map(keras.ops.convert_to_tensor, masks)))
        for way, function in ways.items()}


def second_derivative(model, loss, along):
    """Of loss(model) by every weight, along a direction: arrays by name."""
    import tensorflow as tf
    from impl_keras import engine
    from impl_keras.gradients import value_and_gradients
    from impl_keras.parameters import leaves
    weights = list(leaves(model))
    variables = [weight.get() for weight in weights]
    with tf.GradientTape() as tape:
        _, slopes = value_and_gradients(lambda: loss(model), variables)
        slope = sum(tf.reduce_sum(each * engine.to_native(
            weight.to_theirs(along[weight.name]), "cpu"))
            for weight, each in zip(weights, slopes))
    found = tape.gradient(slope, [variable.value for variable in variables])
    return {weight.name: engine.ours(weight, tf.convert_to_tensor(each))
            for weight, each in zip(weights, found)}


def trained(model, loss):
    """Of loss(model, call) in training: (loss, what else it returns, its
    gradient by every weight: arrays by name)."""
    from impl_keras import engine
    from impl_keras.gradients import value_and_gradients
    from impl_keras.parameters import leaves
    found, weights = [], list(leaves(model))

    def call(*inputs):
        return model(*inputs, training=True)

    def value():
        found[:] = loss(model, call)
        return found[0]

    _, slopes = value_and_gradients(
        value, [weight.get() for weight in weights])
    return *found, {
        weight.name: engine.ours(weight, keras.ops.convert_to_tensor(each))
        for weight, each in zip(weights, slopes)}


def loop(model, batches):
    """Keras' own: compile, then a batch of pairs at a time."""
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=model.config.pad_id), jit_compile=False)
    model.optimizer.learning_rate = 3e-3
    for source, target, labels in batches:
        yield float(model.train_on_batch((source, target), labels))


class Gained(LayerNorm):
    """A norm with one weight more."""

    def __init__(self, d_model, eps):
        super().__init__(d_model, eps)
        self.gain = self.add_weight((d_model,), "ones", name="gain")

    def call(self, x):
        """Normalise x [B T D] over D, then multiply."""
        return super().call(x) * self.gain
