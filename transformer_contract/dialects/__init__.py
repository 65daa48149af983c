"""How other systems store and compute a Transformer: a file for each.

A dialect is a table: the fields of our configuration that the system fixes,
the others under its own words, and its names of the weights. What a file of it
holds becomes our weights, and ours become its own again, equal to the bit.
"""
