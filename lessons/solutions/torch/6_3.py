def epsilon(x, y):
    before = x.var(dim=-1, correction=0)
    after = y.var(dim=-1, correction=0)
    # after = before / (before + ε)
    return float((before / after - before).mean())
