from keras import ops


def first_leak(run, tokens):
    before = run(tokens)
    later = ops.arange(len(tokens))
    for place in range(len(tokens)):
        after = run(ops.where(later > place, (tokens + 1) % 20, tokens))
        if ops.max(ops.abs(after[place] - before[place])) > 1e-9:
            return place
    return -1
