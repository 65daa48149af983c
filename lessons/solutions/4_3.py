import numpy as np


def first_leak(run, tokens):
    before = run(tokens)
    for place in range(len(tokens)):
        changed = tokens.copy()
        changed[place + 1:] = (changed[place + 1:] + 1) % 20
        after = run(changed)
        if np.abs(after[place] - before[place]).max() > 1e-9:
            return place
    return -1
