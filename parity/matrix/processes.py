"""The processes in which an implementation works: one, or a rank each.

One that ends, or is silent, costs its question and no other: all are ended, and
the next question begins them anew.
"""

import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import tempfile
import time

from parity_io.errors import InputError
from transformer_contract.sharding import check_mesh
from parity.check import port_calls, workers
from parity.matrix.meshes import Rank, unlike
from parity.ports import NotChecked
from parity.subjects import (
    MESH_BACKENDS, ONE_PROCESS, devices_of, mesh_axes)

#: The most seconds of one cell; a compiler may take minutes.
PATIENCE = 900

#: Seconds until the ranks of a mesh are given up.
MESH_PATIENCE = 300

#: Seconds in which a rank's end is seen after another rank's failure.
MOMENT = 2

#: The most processes that a mesh may begin here, and devices of one process.
MOST, MOST_IN_ONE = 64, 1024


class PortProcesses:
    """An implementation in processes of its own, all asked the same.

    Args:
        port: its name.
        backend: what Keras runs on; "" elsewhere.
    """

    patience, size = PATIENCE, 1

    def __init__(self, port, backend=""):
        self.port, self.backend, self.processes = port, backend, []

    @property
    def environment(self):
        """The variables that the framework is to see."""
        return {"KERAS_BACKEND": self.backend} if self.backend else {}

    def arguments(self, given):
        """What each process is given of a question's arguments."""
        return [given]

    def begin(self):
        """Begin every process: a Reply."""
        self.processes = [
            workers.SubprocessPort(self.port, environment=self.environment)
            for _ in range(self.size)]
        return self._all(
            "starting", port_calls.settings, [()] * self.size, self.patience)

    def ask(self, work, function, *given, patience=None):
        """The Reply of the first process, once all have answered."""
        if not self.processes:
            begun = self.begin()
            if begun.failure or isinstance(begun.value, NotChecked):
                self.close()
                return begun
        return self._all(work, function, self.arguments(given),
                         patience or self.patience)

    def _all(self, work, function, arguments, patience):
        futures = [process.ask(work, function, *those) for process, those
                   in zip(self.processes, arguments)]
        until = time.monotonic() + patience
        waiting = set(futures)
        while waiting:
            done, waiting = concurrent.futures.wait(
                waiting, max(0, until - time.monotonic()),
                concurrent.futures.FIRST_COMPLETED)
            for future in done:
                if future.result().failure:
                    future = first_cause(futures, future)
                    reply = future.result()
                    if self.size > 1 or reply.ended:
                        self.close()
                    return self._of(futures.index(future), reply)
            if not done and waiting:
                silent = futures.index(next(iter(waiting)))
                self.close()
                return self._of(silent, workers.Reply(
                    None, f"it took more than {patience} seconds", patience))
        return self.together([future.result() for future in futures])

    def together(self, replies):
        """One Reply of all."""
        return replies[0]

    def _of(self, rank, reply):
        """A failed Reply that says whose it is."""
        if self.size == 1:
            return reply
        return dataclasses.replace(
            reply, failure=f"rank {rank} of {self.size}: {reply.failure}")

    def close(self):
        """End every process."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.close()
        self.processes = []


def first_cause(futures, failed):
    """Of the futures of all ranks the one that tells why another failed.

    A rank whose process ended is the cause of what others say of it.
    """
    until = time.monotonic() + MOMENT
    while time.monotonic() < until and not all(
            future.done() for future in futures):
        for future in futures:
            if future.done() and future.result().ended:
                return future
        time.sleep(0.02)
    return next((future for future in futures if future.done()
                 and future.result().ended), failed)


class MeshProcesses(PortProcesses):
    """The processes of a port on a mesh: a process a rank, or one for all.

    Args:
        mesh: in words.
        config, rows: the model's, and how many rows its batches have.

    Raises:
        InputError: the mesh does not divide the model or its batches, or is
            larger than one machine should carry.
    """

    def __init__(self, port, mesh, config, rows):
        super().__init__(port, MESH_BACKENDS.get(port, ""))
        axes = mesh_axes(mesh)
        check_mesh(config, axes, rows)
        self.devices = devices_of(axes)
        self.size = 1 if port in ONE_PROCESS else self.devices
        self.patience = PATIENCE if self.size == 1 else MESH_PATIENCE
        most = MOST_IN_ONE if port in ONE_PROCESS else MOST
        if self.devices > most:
            raise InputError(
                f"a mesh of {self.devices} devices is more than {port} is "
                f"given here; choose one of at most {most}.")
        self.folder: tempfile.TemporaryDirectory | None = None

    @property
    def environment(self):
        """XLA's own flag makes as many devices of one processor."""
        flags = f"{os.environ.get('XLA_FLAGS', '')} " \
            f"--xla_force_host_platform_device_count={self.devices}"
        return super().environment | (
            {"XLA_FLAGS": flags.strip()} if self.size == 1 else {})

    def arguments(self, given):
        """Each is told which it is, and where all meet."""
        assert self.folder is not None
        file = str(pathlib.Path(self.folder.name) / "meeting")
        return [(*given, Rank(number, self.size, file))
                for number in range(self.size)]

    def together(self, replies):
        """The first rank's Reply; it says what another holds unlike it."""
        first, *_ = [reply.value for reply in replies]
        if isinstance(first, dict) and "held" in first:
            first["differences"] |= unlike([
                reply.value["held"] for reply in replies])
        return replies[0]

    def begin(self):
        """Begin every rank: a Reply."""
        self.folder = tempfile.TemporaryDirectory()
        return super().begin()

    def close(self):
        """End every rank, and forget where they met."""
        super().close()
        if self.folder:
            with contextlib.suppress(OSError):
                self.folder.cleanup()
