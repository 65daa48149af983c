"""Choices that follow from random numbers alone."""

from transformer_contract import random

#: Random numbers of a draw.
NUMBERS = 12


class Draw:
    """A pair's random numbers, taken one after the other."""

    def __init__(self, numbers):
        self.numbers = iter(numbers)

    def below(self, size):
        """A whole number from 0 to below ``size``."""
        return next(self.numbers) % size

    def of(self, choices):
        """One of several."""
        return choices[self.below(len(choices))]


def draws(key, rows):
    """As many Draws."""
    return [Draw(numbers) for numbers in
            random.bits64(key, (rows, NUMBERS)).tolist()]
