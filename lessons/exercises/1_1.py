"""Encode a word with byte-pair merges.

`merges` is a list of pairs of pieces, in the order in which they were learned,
such as [("l", "o"), ("lo", "w")]. A word begins as a list of its characters.
Of all pairs of neighbours that have a merge, make the one that was learned
earliest, everywhere in the word from left to right; repeat until no pair of
neighbours has a merge. Return the list of pieces.

    encode("lower", [("l", "o"), ("lo", "w")])  is  ["low", "e", "r"]
"""


def encode(word, merges):
    raise NotImplementedError
