"""Keys and values that are kept while a target is written."""

from keras import ops

from impl_keras.attention import scaled_dot_product_attention


def keys_and_values(attention, memory):
    """An attention's key and value of memory [R S D]: [R H S K] each."""
    return (attention.split(attention.key_dense(memory)),
            attention.split(attention.value_dense(memory)))


def attend(attention, x, key, value, mask):
    """An attention's output for x [R T D], its keys and values given."""
    query = attention.split(attention.query_dense(x))
    # keras: its own would transpose the whole cache for every token
    context = scaled_dot_product_attention(
        query, key, value, mask, attention.weights_dropout, attention)
    return attention.output_dense(attention.merge(context))


def _at(*places):
    """Where a slice begins, numbers and tensors alike."""
    # keras: JAX wants them all of one dtype
    return tuple(ops.convert_to_tensor(place, "int32") for place in places)


def new_cache(model, memory, length):
    """Room for ``length`` tokens, and the memory's keys and values."""
    shape = (memory.shape[0], model.config.n_heads, length, model.config.d_k)
    return [((ops.zeros(shape, memory.dtype), ops.zeros(shape, memory.dtype)),
             keys_and_values(layer.cross_attention, memory))
            for layer in model.decoder.layers]


def decode_one(model, token, position, cache, source_mask):
    """Decode one token of every row, int [R], at a position: [R 1 D]."""
    embedded = model.target_embedding(token[:, None])
    length = cache[0][0][0].shape[2]
    table = ops.convert_to_tensor(
        model.target_positions.table[:length], embedded.dtype)
    x = embedded + ops.take(table, position, axis=0)
    new = []
    for layer, ((key, value), memory) in zip(model.decoder.layers, cache):
        written = ops.arange(length, dtype="int32") <= position

        def self_attention(x):
            nonlocal key, value
            key_, value_ = keys_and_values(layer.self_attention, x)
            key, value = (
                ops.slice_update(old, _at(0, 0, position, 0), new)
                for old, new in ((key, key_), (value, value_)))
            return attend(layer.self_attention, x, key, value,
                          written[None, None, None])

        def cross_attention(x):
            return attend(layer.cross_attention, x, *memory, source_mask)

        def feed_forward(x):
            return layer.feed_forward(x)

        x = layer.self_attention_residual(x, sublayer=self_attention)
        x = layer.cross_attention_residual(x, sublayer=cross_attention)
        x = layer.feed_forward_residual(x, sublayer=feed_forward)
        new.append(((key, value), memory))
    return model.decoder.norm(x), new


def reorder(cache, parents, written):
    """The cache of rows that go on from other rows: parents, int [R]."""
    return [((ops.take(key, parents, axis=0), ops.take(value, parents, axis=0)),
             memory) for (key, value), memory in cache]
