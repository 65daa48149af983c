"""The fast form of the port: whole searches and steps, compiled.

Every file computes the same as its namesake of the readable form, to rounding;
the same checks prove both.
"""
