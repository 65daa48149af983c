"""Turn ids into vectors.

`tokens` is an array of ids [B T], `table` an array [V D] with a row for each
token. Return an array [B T D]: the row of each token, multiplied by the square
root of D, as the paper has it. Padding, the id 0, has a row like any other.
"""


def embed(tokens, table):
    raise NotImplementedError
