"""The fast form of the reference: the same answers, made for speed.

Every file computes the same as its namesake of the readable form, to rounding;
the same checks prove both.
"""
