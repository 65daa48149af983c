"""Where a port works: in this process, or in one of its own.

Ports in processes of their own work at the same time, and the reference beside
them; each imports its framework while the others do. What a port is asked is a
function of its Workbench, so that both kinds are asked alike.
"""

import concurrent.futures
import contextlib
import dataclasses
import multiprocessing
import os
import signal
import time
import traceback

from threadpoolctl import threadpool_limits

from parity_io.errors import InputError
from parity_io.processes import end_with_parent
from transformer_contract.config import TransformerConfig
from parity import compiled, ports, out_of_memory, quiet
from parity.check.port_calls import settings
from parity.check.runners import EngineRunner
from parity.check.shared_arrays import load
from parity.ports import NotChecked, TooOld


@dataclasses.dataclass(frozen=True)
class ModelSpec:
    """A model to build, small enough to be sent.

    Attributes:
        name: tells models apart that differ in nothing but their weights.
        weights: arrays by name, as SharedArrays stores them.
        form: one of parity.ports.FORMS.
    """

    name: str
    config: TransformerConfig
    dtype: str
    device: str
    weights: object = dataclasses.field(compare=False)
    form: str = "readable"


class Workbench:
    """What a port works with: its engine, and the models that it has built.

    Models of one name and dtype are kept until another is asked for.
    """

    def __init__(self, engine):
        self.engine, self._runners = engine, {}

    def runner(self, model):
        """The EngineRunner of a ModelSpec, built once."""
        if any((spec.name, spec.dtype) != (model.name, model.dtype)
               for spec in self._runners):
            self.clear()
        if model not in self._runners:
            self._runners[model] = EngineRunner(
                self.engine_of(model), model.config, load(model.weights),
                model.dtype, model.device)
        return self._runners[model]

    def engine_of(self, model):
        """The engine of the form that a ModelSpec asks for."""
        if model.form == "readable":
            return self.engine
        return ports.engine(self.engine.NAME, model.form)

    def clear(self):
        """Drop every model."""
        self._runners.clear()


@dataclasses.dataclass(frozen=True)
class Reply:
    """What a port answered, or in words why it could not; how long it took."""

    value: object
    failure: str
    seconds: float
    traceback: str = ""

    @property
    def ended(self):
        """Whether it is that of a process that is gone."""
        return self.failure.startswith(ENDED)


@dataclasses.dataclass(frozen=True)
class PortFailure:
    """An error inside a port's own code, or a framework that is too old.

    Attributes:
        work: what the port was at.
        reason: the error in one line.
        traceback: as Python prints it; "" where there is none.
    """

    port: str
    work: str
    reason: str
    traceback: str


def words_of(error):
    """An exception in one line; of a lack of memory, where and how much."""
    if words := out_of_memory.message(error, ports.packages()):
        return words
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def answer(bench, function, *arguments):
    """The Reply of ``function(bench, *arguments)``."""
    start = time.perf_counter()
    try:
        value = function(bench, *arguments)
    except FAILURES as error:
        return failed(error, time.perf_counter() - start)
    return Reply(value, "", time.perf_counter() - start)


#: What a port may raise, which may be anything; even that Python shall end.
FAILURES = Exception, SystemExit


def failed(error, seconds=0.0):
    """The Reply of a port that raised an error."""
    return Reply(None, words_of(error), seconds, "".join(
        traceback.format_exception(error)))


class Port:
    """A port at work.

    Attributes:
        work: what it is at.
        failures: PortFailures, each kind of error once.
    """

    def __init__(self, name, on_work):
        self.name, self.on_work, self.work = name, on_work, ""
        self.failures = []

    def noted(self, reply):
        """A Reply as it is; if it is a failure of a new kind, it is kept."""
        if reply.failure and reply.failure not in (
                failure.reason for failure in self.failures):
            self.failures.append(PortFailure(
                self.name, self.work, reply.failure, reply.traceback))
        return reply


class InProcessPort(Port):
    """A port that works in this process, when it is asked."""

    in_subprocess = False

    def __init__(self, engine, on_work=lambda: None):
        super().__init__(engine.NAME, on_work)
        self.bench = Workbench(engine)

    def ask(self, work, function, *arguments, threads=1):
        """Have ``function(bench, *arguments)`` computed: a Future of a Reply.

        Args:
            work: what it is, for progress.
            threads: 1, or None for as many as the libraries like.
        """
        self.work = work
        self.on_work()
        future: concurrent.futures.Future = (
            concurrent.futures.Future())
        future.set_result(self.noted(answer(self.bench, function, *arguments)))
        return future

    def close(self):
        """Nothing is left behind."""


#: What is said of a port whose process is gone.
ENDED = "its process ended"


#: Seconds in which a process may end by itself.
MOMENT = 2


class SubprocessPort(Port):
    """A port that works in a process of its own, one thing after another.

    The process ends with this one, however that ends.

    Args:
        environment: variables that its framework is to see, by name.
    """

    in_subprocess = True

    def __init__(self, name, on_work=lambda: None, environment=None):
        super().__init__(name, on_work)
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=serve, args=(name, theirs, environment or {}),
            daemon=True)
        self._process.start()
        theirs.close()
        self._thread = concurrent.futures.ThreadPoolExecutor(1)

    def ask(self, work, function, *arguments, threads=1):
        """As InProcessPort's, but the Future is not done at once."""
        return self._thread.submit(
            self._ask, work, function, arguments, threads)

    def _ask(self, work, function, arguments, threads):
        if work != self.work:
            self.work = work
            self.on_work()
        try:
            self._pipe.send((function, arguments, threads))
            return self.noted(self._pipe.recv())
        except (EOFError, OSError):
            return self.noted(Reply(None, ENDED, 0.0))
        except Exception as error:  # what it answered cannot be read
            return self.noted(failed(error))

    def terminate(self):
        """Tell the process to end, and do not wait until it has."""
        self._process.terminate()

    def close(self):
        """End the process, whatever it is at; even one that was stopped."""
        self.terminate()
        self._process.join(MOMENT)
        self._process.kill()
        self._thread.shutdown(cancel_futures=True)
        self._process.join()


def serve(name, pipe, environment):
    """Reply what is asked of a port, until nobody asks any more.

    Args:
        environment: variables that its framework is to see.
    """
    os.environ.update(environment)
    with contextlib.suppress(AttributeError, OSError):  # not every system's
        os.nice(ports.NICENESS.get(name, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the asker ends it
    end_with_parent()
    broken = engine = None
    try:
        engine = ports.engine(name)
        quiet.settled()
    except FAILURES as error:
        broken = failed(error)
    bench = Workbench(engine)
    limited, now = threadpool_limits(1), 1
    with contextlib.suppress(EOFError, OSError):
        while True:
            function, arguments, threads = pipe.recv()
            if broken or isinstance(engine, NotChecked):
                pipe.send(broken or Reply(engine, "", 0.0))
                continue
            if threads != now:
                now = threads
                limited.restore_original_limits()
                limited = threadpool_limits(threads)
            reply = answer(bench, function, *arguments)
            try:
                pipe.send(reply)
            except (EOFError, OSError):
                raise
            except Exception as error:  # what cannot be sent is no array
                pipe.send(failed(error))


def open_ports(names, subprocesses, on_work=lambda: None):
    """Open ports.

    Returns:
        {name: InProcessPort or SubprocessPort}, {name: settings}, and of the
        others a list of NotChecked and one of PortFailure.
    """
    ports_at_work = {}
    absent: list = []
    failures: list = []
    try:
        for name in names:
            if port := ports.absent(name) or ports.no_step_access(name):
                record_unavailable(port, absent, failures)
            elif subprocesses:
                ports_at_work[name] = SubprocessPort(name, on_work)
            else:
                open_in_process(name, on_work, ports_at_work, absent, failures)
        facts_by_port = set_precisions(ports_at_work, absent, failures)
    except BaseException:  # an interrupt: nothing is left behind
        for port in ports_at_work.values():
            port.close()
        raise
    return ports_at_work, facts_by_port, absent, failures


def open_in_process(name, on_work, ports_at_work, absent, failures):
    """Add a port that works here to those at work, or to the others."""
    try:
        engine = ports.engine(name)
    except FAILURES as error:
        reply = failed(error)
        failures.append(PortFailure(
            name, "starting", reply.failure, reply.traceback))
        return
    if isinstance(engine, NotChecked):
        absent.append(engine)
    else:
        ports_at_work[name] = InProcessPort(engine, on_work)


def record_unavailable(port, absent, failures):
    """Note a NotChecked among those; one that is TooOld among failures."""
    if isinstance(port, TooOld):
        failures.append(PortFailure(port.port, "starting", port.reason, ""))
    else:
        absent.append(port)


def set_precisions(ports_at_work, absent, failures):
    """Have ports set their precision: {name: settings}; drop the rest.

    Raises:
        InputError: XLA ended a process, and may have been given an option
            that it does not know.
    """
    futures = {name: port.ask("starting", settings)
               for name, port in ports_at_work.items()}
    facts_by_port = {}
    for name, future in futures.items():
        reply = future.result()
        if not reply.failure and not isinstance(reply.value, NotChecked):
            facts_by_port[name] = reply.value
            continue
        port = ports_at_work.pop(name)
        if reply.failure == ENDED and (options := compiled.unsure()):
            port.close()
            raise InputError(
                f"the process of {name} ended as it began, as XLA ends one "
                f"that gives it an option that it does not know; take "
                f"{' '.join(options)} out of {compiled.OPTIONS}.")
        failures += port.failures
        if not reply.failure:
            absent.append(reply.value)
        port.close()
    return facts_by_port
