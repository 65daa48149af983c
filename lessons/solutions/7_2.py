def parameters(vocab, d_model, d_ff, layers):
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    ends = 3 * vocab * d_model + vocab
    return ends + layers * (encoder + decoder)
