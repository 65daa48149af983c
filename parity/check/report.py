"""What a run of the check found, as data."""

import dataclasses
import re

from parity import ports
from parity.check import workers
from parity.numerics.comparator import DIVERGENCE, MATCH, Difference
from parity.subjects import Subject

#: The case of the model at its full size, and the trained model's.
FULL_SIZE_CASE = "full size, real sentences"
TRAINED_CASE = "trained, real dates"


@dataclasses.dataclass(frozen=True)
class Row:
    """One step of one case, compared in every port.

    Attributes:
        differences: port -> Difference, for the ports that were compared.
        form: which form of the ports it was; see parity.ports.FORMS.
    """

    preset: str
    case: str
    name: str
    dtype: str
    device: str
    shape: tuple
    limit: float
    differences: dict
    form: str = "readable"

    @property
    def verdict(self):
        """The worst verdict among the ports."""
        verdicts = [one.verdict for one in self.differences.values()]
        if DIVERGENCE in verdicts:
            return DIVERGENCE
        return verdicts[0] if verdicts else "not checked"

    @property
    def component(self):
        """What was run, as tables have it."""
        if self.name.startswith(("tokens,", "scores,")):
            kind = ("search" if self.form == "readable"
                    else f"{self.form} search")
            return f"{kind}: {self.case.split(':')[0]}"
        return {FULL_SIZE_CASE: "transformer, full size",
                TRAINED_CASE: "transformer, trained",
                "transformer": "transformer, whole",
                "precision canary": "product in float32"}.get(
            self.case, re.sub(r", \d+ steps$", "", self.case))

    def subject(self, port):
        """What a port's Difference is of."""
        return Subject(port, self.form, dtype=self.dtype, device=self.device,
                      backend=ports.backend(port))

    def comparisons(self):
        """One plain dict a port, as the JSON report has them."""
        for port, difference in self.differences.items():
            yield {
                "preset": self.preset, "case": self.case, "name": self.name,
                **dataclasses.asdict(self.subject(port)),
                "shape": list(self.shape),
                "error": difference.error, "limit": difference.limit,
                "verdict": difference.verdict, "reason": difference.reason,
            }


@dataclasses.dataclass(frozen=True)
class Time:
    """How long one implementation took for one case, in seconds."""

    preset: str
    case: str
    dtype: str
    device: str
    port: str
    seconds: float


@dataclasses.dataclass(frozen=True)
class NotFused:
    """What a port's fast form leaves to its readable one, and why.

    Attributes:
        models: by name, of which it does.
    """

    port: str
    reason: str
    models: tuple


@dataclasses.dataclass
class Report:
    """What a run of the harness found.

    Attributes:
        rows: every step, in order.
        expected: how many comparisons there should be, ports that could not
            be checked included.
        not_checked: NotChecked, one for each port, device or dtype left out.
        not_compared: how many of those expected were not made because of
            ``not_checked``.
        not_done: in a sentence each, what was asked for and is not compared
            in a dtype; it is not counted.
        broken: PortFailures of ports that could not begin.
        engines: port -> where it works, of the ports that were compared.
        settings: port -> the precision settings that were made.
        devices: port -> the devices that it has here.
        environment: versions, devices and settings, as plain data.
        seconds: how long it took, with the import of the frameworks.
        times: a Time for each case that each implementation ran.
        selection: "ports", "presets", "dtypes" and "devices" -> names.
        form: of the ports, one of parity.ports.FORMS.
        own: how many comparisons are of the reference's own searches, which
            stand beside the ports'.
        not_fused: NotFused, of the fast form.
    """

    rows: list = dataclasses.field(default_factory=list)
    expected: int = 0
    not_compared: int = 0
    not_checked: list = dataclasses.field(default_factory=list)
    not_done: list = dataclasses.field(default_factory=list)
    broken: list = dataclasses.field(default_factory=list)
    engines: dict = dataclasses.field(default_factory=dict)
    settings: dict = dataclasses.field(default_factory=dict)
    devices: dict = dataclasses.field(default_factory=dict)
    environment: dict = dataclasses.field(default_factory=dict)
    seconds: float = 0.0
    times: list = dataclasses.field(default_factory=list)
    selection: dict = dataclasses.field(default_factory=dict)
    form: str = "readable"
    own: int = 0
    not_fused: list = dataclasses.field(default_factory=list)

    def open(self, port_names, subprocesses=False, on_work=lambda: None):
        """Have ports work here or in subprocesses; note those that cannot.

        Returns:
            port -> workers.InProcessPort or SubprocessPort.
        """
        self.engines, facts, absent, self.broken = workers.open_ports(
            port_names, subprocesses, on_work)
        self.settings = {name: settings
                         for name, (settings, _) in facts.items()}
        self.devices = {name: devices for name, (_, devices) in facts.items()}
        self.not_checked += absent
        for failure in self.broken:
            self.expected += 1
            self.rows.append(Row(
                "every model", "starting", "engine", "float32", "cpu", (), 0.0,
                {failure.port: Difference(
                    None, 0.0, DIVERGENCE, failure.reason)}))
        return self.engines

    @property
    def failures(self):
        """PortFailures: every error inside a port's own code, by kind."""
        return [*self.broken, *(failure for port in self.engines.values()
                                for failure in port.failures)]

    def close(self):
        """End the processes of ports that work apart."""
        for port in self.engines.values():
            port.close()

    @property
    def compared(self):
        """How many comparisons were made."""
        return sum(len(row.differences) for row in self.rows)

    def closest(self):
        """Every comparison that has a limit, the nearest to it first.

        (row, port, Difference) each.
        """
        entries = [(row, port, one) for row in self.rows
                   for port, one in row.differences.items()
                   if one.share is not None]
        return sorted(entries, key=lambda entry: -entry[2].share)

    def divergences(self):
        """(row, port, Difference) of every divergence, first things first."""
        return [(row, port, difference) for row in self.rows
                for port, difference in row.differences.items()
                if difference.verdict == DIVERGENCE]

    @property
    def verdict(self):
        """MATCH if all that could be compared was, and matched."""
        if self.compared == self.own and not self.divergences():
            return "nothing compared"
        complete = self.compared == self.expected - self.not_compared
        right = complete and not self.divergences() and not self.failures
        return MATCH if right else DIVERGENCE

    @property
    def status(self):
        """The exit status: 0 match, 1 divergence, 4 nothing was compared."""
        return {MATCH: 0, DIVERGENCE: 1}.get(self.verdict, 4)

    def as_json(self):
        """The report as plain data."""
        return {
            "schema": 1,
            "verdict": self.verdict,
            "compared": self.compared,
            "expected": self.expected,
            "not_checked": [dataclasses.asdict(n) for n in self.not_checked],
            "not_done": self.not_done,
            "form": self.form,
            "not_fused": [dataclasses.asdict(one) for one in self.not_fused],
            "failures": [dataclasses.asdict(one) for one in self.failures],
            "environment": self.environment,
            "comparisons": [comparison for row in self.rows
                            for comparison in row.comparisons()],
            "seconds": self.seconds,
            "times": [dataclasses.asdict(one) for one in self.times],
        }
