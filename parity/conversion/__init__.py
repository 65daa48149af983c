"""Weights of one model, put into another: which is which, and how it is done.
"""
