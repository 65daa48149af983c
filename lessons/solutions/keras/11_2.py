from keras import ops


def best(alive, log_probs, count):
    candidates = ops.reshape(alive[:, None] + log_probs, (-1,))
    places = ops.argsort(-candidates)[:count]  # of equals the first stays so
    vocab = log_probs.shape[1]
    return ops.take(candidates, places), places // vocab, places % vocab
