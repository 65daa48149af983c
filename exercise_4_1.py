"""A causal mask.

Return a boolean array [1 1 length length]. A row is a query, a column a key;
True means that the query may attend to the key. A word may attend to itself
and to all words before it, and to none after it.
"""


def causal_mask(length):
    raise NotImplementedError
