"""The exercises of lesson 12: precision, and the hunt for a fault."""

import functools

import ml_dtypes
import numpy as np

from transformer_contract.weights import probe_weights, select
from parity import ports
from parity.causes import catalogue
from parity.check import cases
from parity.check.cases import values
from parity.course.exercise import Exercise
from parity.numerics.distance import strict_distance

#: What may be wrong in the attention of exercise 12.3.
SUSPECTS = (
    "query's bias missing", "value's bias missing", "scores over √d_model",
    "attention without its mask", "softmax over queries",
    "output kernel transposed", "output's bias missing")


def to_round():
    """(x,): float32 of many sizes, and halfway between two of bfloat16."""
    x = values("exercise 12.1", 4, 8).astype(np.float32)
    halfway = np.array([0x3F808000, 0x3F818000, 0xC0128000, 0x45A38000],
                       np.uint32).view(np.float32)
    return [(x,), (x * np.float32(1e20),), (halfway[None],),
            (np.nextafter(halfway, np.float32(9e9))[None],)]


def rounded(x):
    """Rounded to bfloat16, in float32."""
    return x.astype(ml_dtypes.bfloat16).astype(np.float32)


def cut(x):
    """The last 16 bits cut off."""
    return (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def ties_away(x):
    """Halfway goes away from 0, not to the even one."""
    return cut((x.view(np.uint32) + np.uint32(0x8000)).view(np.float32))


def ties_down(x):
    """Halfway goes to 0, not to the even one."""
    return cut((x.view(np.uint32) + np.uint32(0x7FFF)).view(np.float32))


def by_float16(x):
    """Rounded to float16, which has another exponent."""
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)


@functools.cache
def hunted():
    """[(fault, sound steps, steps with it)] of one attention, of two inputs.
    """
    config = cases.test_size("complete")
    weights = select(probe_weights(config), "encoder.layers.0.self_attention.")
    engine = ports.engine("numpy")
    mask = np.tri(5, dtype=bool)[None, None]
    found = []
    for number, scale in enumerate((1.0, 0.3)):
        x = values(f"exercise 12 {number}", 2, 5, config.d_model, scale=scale)

        def run(x=x):
            module = engine.build("multi_head_attention", config, weights)
            return engine.run(module, x, x, mask, cache=None)
        sound = run()
        for name in (*SUSPECTS, "softmax in float32"):
            with catalogue.by_name(name).put("numpy"):
                found.append((name, sound, run()))
        found.append(("", sound, run()))
    return found


def traces():
    """(sound, faulty): steps by name, in their order.

    Some differ by rounding alone, some by little more than the limit or less,
    everywhere or in one number, and some are small or large as a whole.
    """
    pairs = [(sound, faulty) for _, sound, faulty in hunted()]
    noisy = [(sound, {name: x + 1e-14 * np.sqrt(np.square(x).mean()) * values(
        f"exercise 12.2 {name}", *x.shape) for name, x in faulty.items()})
        for sound, faulty in pairs[-2:]]
    sound = pairs[-1][0]
    edges = [(sound, sound | {name: moved(sound[name], error, alone)})
             for name in sound for error, alone in (
                 (0.7e-12, True), (1.4e-12, True), (1.4e-12, False))]
    return pairs + noisy + edges + [
        ({name: factor * x for name, x in sound.items()},
         {name: factor * x for name, x in faulty.items()})
        for sound, faulty in noisy for factor in (1e-7, 1e7)]


def moved(x, error, alone):
    """x with this relative L2 error, in one number alone or in all alike."""
    change = np.zeros(x.size)
    change[:1 if alone else None] = 1.0
    change *= error * np.linalg.norm(x) / np.linalg.norm(change)
    return x + change.reshape(x.shape)


def gap(ours, theirs):
    """The L2 norm of a difference, and that of what it is held against."""
    return np.linalg.norm(theirs - ours), np.linalg.norm(ours)


def first_difference(ours, theirs, limit=1e-12, relative=True):
    """The first step whose relative L2 error is above the limit, or ""."""
    for name in ours:
        error, norm = gap(ours[name], theirs[name])
        if error > limit * (norm if relative else 1):
            return name
    return ""


def largest_difference(ours, theirs):
    """The step with the largest error, or ""."""
    errors = {name: strict_distance(theirs[name], ours[name])
              for name in ours}
    worst = max(errors, key=errors.__getitem__)
    return worst if errors[worst] > 1e-12 else ""


def largest_number(ours, theirs, relative=False):
    """The first step in which one number differs by more than the limit."""
    return next((name for name in ours if np.abs(
        theirs[name] - ours[name]).max() > 1e-12 * (
            np.abs(ours[name]).max() if relative else 1)), "")


def by_name(ours, theirs):
    """The first by the alphabet of those that differ."""
    return next((name for name in sorted(ours) if first_difference(
        {name: ours[name]}, theirs)), "")


def close(ours, theirs):
    """By numpy's allclose, with its default tolerances."""
    return next((name for name in ours
                 if not np.allclose(theirs[name], ours[name])), "")


def suspects():
    """(sound, faulty) of the faults that may be the answer."""
    return [(sound, faulty) for name, sound, faulty in hunted()
            if name in SUSPECTS]


def fault_of(sound, faulty):
    """The name of the fault that was put there."""
    return next(name for name, _, steps in hunted() if all(
        np.array_equal(steps[step], faulty[step]) for step in steps))


EXERCISES = (
    Exercise(
        "12.1", "to_bfloat16", to_round, rounded,
        {"the last bits are cut off, not rounded": cut,
         "halfway is rounded away from 0, not to the even neighbour":
             ties_away,
         "halfway is always rounded towards 0, not to the even neighbour":
             ties_down,
         "float16 is another format: 5 bits of exponent and 10 of fraction":
             by_float16},
        without=frozenset(("bfloat16", "ml_dtypes"))),
    Exercise(
        "12.2", "first_difference", traces, first_difference,
        {"the step with the largest error is named, not the first that is "
         "wrong": largest_difference,
         "numpy's allclose allows 1e-5 and misses a fault that is smaller":
             close,
         "rounding is taken for a fault: the numbers need not be equal":
             functools.partial(first_difference, limit=0),
         "the limit is absolute, and has to be relative to the step's norm":
             functools.partial(first_difference, relative=False),
         "the largest number is held against the limit; take the L2 norm, "
         "and divide it by the step's": largest_number,
         "the largest number is held against the limit; take the L2 norm":
             functools.partial(largest_number, relative=True),
         "the steps are taken by the alphabet, not as they were computed":
             by_name}),
    Exercise(
        "12.3", "fault_of", suspects, fault_of,
        {"all that shows at the weights is taken for a missing mask":
            lambda sound, faulty: {
                "softmax over queries": "attention without its mask"}.get(
                    name := fault_of(sound, faulty), name),
         "all that shows at the output is taken for a transposed kernel":
            lambda sound, faulty: {
                "output's bias missing": "output kernel transposed"}.get(
                    name := fault_of(sound, faulty), name)},
        names=SUSPECTS),
)
