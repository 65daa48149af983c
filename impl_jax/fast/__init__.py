"""The fast form of the port: whole searches and steps, compiled.

Every file stands beside one of the readable form and computes the same, to
rounding; the same checks hold both.
"""
