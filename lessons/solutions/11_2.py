import numpy as np


def best(alive, log_probs, count):
    candidates = (alive[:, None] + log_probs).ravel()
    places = np.argsort(-candidates, kind="stable")[:count]
    parents, tokens = np.divmod(places, log_probs.shape[1])
    return candidates[places], parents, tokens
