"""A few numbers of an array that do not depend on its order or shape.

Two arrays with the same numbers in any order have the same signature up to
rounding; two others practically never. With it two programs are aligned
without keeping what they computed.
"""

import dataclasses
import hashlib

import numpy as np

#: Arrays of fewer different numbers say too little to be recognised by them.
TELLING = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Signature:
    """What an array's numbers are, in any order.

    Attributes:
        size: how many numbers.
        kind: "f" floating or complex, "i" integer, "b" boolean.
        moments: sums over the finite numbers x, after division by their root
            mean square: of x, |x|, x³ and two bounded functions of x; and the
            root mean square, last. Integers as well.
        special: how many are NaN, +∞, -∞.
        digest: of the bytes as they lie.
        telling: whether there are enough different numbers to be recognised.
    """

    size: int
    kind: str
    moments: tuple
    special: tuple
    digest: bytes
    telling: bool


def signature(array, known=None):
    """The Signature of a NumPy array.

    Args:
        array: of any shape and any dtype but objects and texts.
        known: the Signature of an array that may be the same to the bit, of
            which nothing is then computed anew.
    """
    array = np.asarray(array)
    digest = hashlib.blake2b(np.ascontiguousarray(array).view(np.uint8).data
                             if array.size else b"", digest_size=16).digest()
    if known is not None and known.digest == digest and (
            known.size == array.size):
        return known
    kind = array.dtype.kind
    if kind == "c":
        array = np.stack([array.real, array.imag])
    kind = "b" if kind == "b" else "i" if kind in "iu" else "f"
    numbers = array.reshape(-1).astype(np.float64)
    finite, special = np.isfinite(numbers), (0, 0, 0)
    if not finite.all():
        special = (int(np.isnan(numbers).sum()), int((numbers == np.inf).sum()),
                   int((numbers == -np.inf).sum()))
        numbers = numbers[finite]
    if not numbers.size:
        return Signature(array.size, kind, (0.0,) * 6, special, digest, False)
    with np.errstate(all="ignore"):
        largest = float(np.abs(numbers).max())
        scaled = numbers / largest if largest else numbers
        root = float(np.sqrt(np.mean(scaled * scaled)))
        scaled = scaled / root if root else scaled
        moments = (float(scaled.mean()), float(np.abs(scaled).mean()),
                   float(np.mean(scaled * scaled * scaled)),
                   float(np.mean(np.sin(1.3 * scaled))),
                   float(np.mean(np.cos(2.1 * scaled))), root * largest)
    few = set(numbers[:64].tolist()) if kind == "f" else ()
    telling = len(few) >= TELLING or (
        kind == "f" and np.unique(numbers[:4096]).size >= TELLING)
    return Signature(array.size, kind, moments, special, digest, telling)
