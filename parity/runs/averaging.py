"""The mean of a run's weights at its last checkpoints.

The paper's models are such means (section 6.1): of 5 checkpoints, written ten
minutes apart, or of 20.
"""

import numpy as np

from transformer_contract import weights
from parity_io.errors import InputError, plural
from transformer_contract.schema import schema


class Averaging:
    """Which weights of a run are averaged, and where they lie meanwhile.

    They are files of the run's folder, so that a run which is resumed finds
    those that it had written.

    Args:
        run: a training.Run, at its beginning or resumed.
        steps, every: up to which step it trains, and how often it saves.
        count: of how many checkpoints the mean is; 1 is the last alone.

    Attributes:
        steps: the steps whose weights are averaged.

    Raises:
        InputError: there will be fewer checkpoints than that.
    """

    def __init__(self, run, steps, every, count):
        self.run, last = run, max(steps, run.step)
        before = range(every, last, every)
        self.steps = [*before[max(0, len(before) - count + 1):], last]
        if len(self.steps) < count:
            raise InputError(
                f"--average {count} needs {count} checkpoints, and a run up "
                f"to step {last} with one every {plural(every, 'step')} has "
                f"{len(self.steps)}; choose fewer, or a smaller --every.")
        lost = [step for step in self.steps
                if step < run.step and not self.path(step).is_file()]
        if count > 1 and lost:
            raise InputError(
                f"--average {count} needs the weights of step {lost[0]}, "
                "which were not kept; choose fewer, or train further with "
                "--steps.")
        for step in self.steps if count > 1 else ():
            if step < run.step:
                self.arrays(step)  # found now, not after the last step
        if run.step:
            self.keep()

    def path(self, step):
        """The file of a step's weights."""
        return self.run.folder / f"weights-{step}.safetensors"

    def arrays(self, step):
        """A step's weights by name.

        Raises:
            InputError: its file is gone, damaged or of another step.
        """
        path, config = self.path(step), self.run.settings.config
        arrays, metadata = weights.load(path)
        weights.check(arrays, schema(config), str(path))
        if weights.described(metadata).get("step") != step:
            raise InputError(
                f"{str(path)!r} is not of step {step}; put back the file that "
                "the run wrote, or average fewer.")
        return arrays

    def keep(self):
        """Write the run's weights, if they are of a step to be averaged."""
        run = self.run
        if len(self.steps) > 1 and run.step in self.steps:
            weights.save(self.path(run.step), run.engine.export(run.model),
                         config=run.settings.config.as_dict(), step=run.step)

    def model(self):
        """The run's model with the mean of those weights.

        Raises:
            InputError: a file of them is gone or damaged.
        """
        run = self.run
        if len(self.steps) == 1:
            return run.model
        config, dtype = run.settings.config, run.settings.dtype
        return run.engine.build(
            "transformer", config, mean(map(self.arrays, self.steps), dtype),
            dtype, run.device)


def mean(models, dtype):
    """The mean of models' weights, {name: array} each, summed in float64."""
    total: dict[str, np.ndarray] = {}
    count = 0
    for arrays in models:
        count += 1
        for name, array in arrays.items():
            total[name] = total.get(name, 0.0) + array.astype(np.float64)
    return {name: (array / count).astype(dtype)
            for name, array in total.items()}
