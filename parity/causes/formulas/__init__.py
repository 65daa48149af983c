"""The maths of each sort of module in float64 NumPy, with its variants.

One formula serves both ways: put into a port by ``parity.causes.faults``, and
held against the numbers of a traced module by ``parity.causes.fit``.
"""
