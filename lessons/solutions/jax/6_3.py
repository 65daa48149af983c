def epsilon(x, y):
    before, after = x.var(axis=-1), y.var(axis=-1)
    # after = before / (before + ε)
    return float((before / after - before).mean())
