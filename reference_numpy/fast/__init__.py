"""The fast form of the reference: the same answers, made for speed.

Every file stands beside one of the readable form and computes the same, to
rounding; the same checks hold both.
"""
