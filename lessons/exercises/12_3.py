"""Your port has one of these: find it.

`sound` and `faulty` are the steps of an attention and of a port of it that has
one fault: dicts with "query", "key", "value", "scores", "weights", "context"
and "output", heads already split: queries are [B H T K], weights [B H T T], and
the output is [B T D]. Both had the same inputs and a causal mask. Return the
name of the fault, one of

    "query's bias missing"          "value's bias missing"
    "scores over √d_model"          "attention without its mask"
    "softmax over queries"          "output kernel transposed"
    "output's bias missing"

Where it shows first leaves one or two of them; the numbers there tell the
rest. What has the sum 1 in a softmax? What does a missing bias do to each row?
"""


def fault_of(sound, faulty):
    raise NotImplementedError
