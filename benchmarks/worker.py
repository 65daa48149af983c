"""One implementation in a process of its own, and the pipe to it."""

import contextlib
import ctypes
import functools
import gc
import importlib
import json
import os
import pathlib
import subprocess
import sys
import time

from parity_io.processes import end_with_parent

ROOT = pathlib.Path(__file__).parent.parent

#: The products whose rate is measured: rows, inner, columns; and the numbers
#: whose reading is timed.
PRODUCTS = ((512, 512, 2048), (512, 512, 32_000))
NUMBERS = 2**26
if os.environ.get("PARITY_BENCH_QUICK"):
    PRODUCTS, NUMBERS = ((64, 64, 64),), 2**16


class Worker:
    """The near end: starts the process and asks it, one thing at a time."""

    def __init__(self, benchmark, name, weights, threads, root=ROOT,
                 loud=False):
        settings = {"benchmark": benchmark, "name": name,
                    "weights": weights and str(weights), "threads": threads}
        limits = {variable: str(threads) for variable in (
            "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
            "NPROC")}
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", json.dumps(settings)],
            cwd=root, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=os.environ | limits | {
                "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3",
                "JAX_PLATFORMS": "cpu"},
            stderr=None if loud else subprocess.DEVNULL)

    def ask(self, request, **arguments):
        """Send a request and wait for its answer, as plain data."""
        print(json.dumps({"request": request, **arguments}),
              file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process of {self.name} ended; start it "
                               "with --loud to see why")
        return json.loads(answer)

    def close(self):
        """End the process."""
        self.process.stdin.close()
        self.process.wait()


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def seconds(function, clock):
    """How long one call takes by a clock; "cpu" adds up all threads."""
    start = CLOCKS[clock]()
    function()
    return CLOCKS[clock]() - start


def memory(field):
    """A field of /proc/self/status in bytes, such as VmHWM; None elsewhere."""
    try:
        lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    sizes = [line.split()[1] for line in lines if line.startswith(field)]
    return int(sizes[0]) * 1024 if sizes else None


def give_back():
    """Give freed memory back to the system, which libraries keep by malloc."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def forget_peak():
    """Set VmHWM back to the memory held now, where the system can."""
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass


def blas():
    """The BLAS libraries that threadpoolctl sees in this process."""
    from threadpoolctl import threadpool_info
    return [f"{info['internal_api']} {info['version']} "
            f"{info.get('architecture') or ''} x{info['num_threads']}"
            for info in threadpool_info() if info["user_api"] == "blas"]


class Far:
    """The far end: one method for each request."""

    def __init__(self, benchmark, name, weights, threads):
        from transformer_contract.weights import load
        table = importlib.import_module(
            f"benchmarks.{benchmark}_implementations")
        make, _, libraries, *_ = table.IMPLEMENTATIONS[name]
        self.libraries = libraries
        for library in libraries:
            importlib.import_module(library)
        self.imported = memory("VmRSS")

        @functools.cache
        def made(**sizes):
            return make(table.config(), weights and load(weights)[0],
                        table.batch(**sizes), threads)

        self.made, self.ready, self.products = made, made(), None

    def describe(self):
        """What computes in this process."""
        return {"versions": self.ready.versions, "blas": blas(),
                "imported": self.imported, "note": self.ready.note}

    def validate(self, path):
        """Write what the first runs return to a file."""
        import numpy as np
        np.save(path, [self.ready.to_numpy(self.ready.run())
                       for _ in range(self.ready.checks)])
        forget_peak()
        return path

    def choose(self, **case):
        """Have another case run from here on.

        Of a pass it is a batch of another size, which is made ready once.
        """
        self.ready = (self.ready.choose or self.made)(**case)

    def turn(self, repeats, clock, warm=True, least=0.0):
        """One run that does not count, then the times of some.

        Args:
            least: seconds that all of them are to take together.

        Returns:
            The times, and the CPU seconds that all of it took.
        """
        start = time.process_time()
        if warm:
            self.ready.run()
        times = []
        while len(times) < repeats or sum(times) < least:
            times.append(seconds(self.ready.run, clock))
        return times, time.process_time() - start

    def multiply(self, repeats, clock):
        """Operations per second of each product, the best of some."""
        if self.products is None:
            import numpy as np
            generator = np.random.default_rng(0)
            self.products = [self.ready.product(
                generator.standard_normal((n, k), np.float32),
                generator.standard_normal((k, m), np.float32))
                for n, k, m in PRODUCTS]
        rates = []
        for (n, k, m), product in zip(PRODUCTS, self.products):
            product()
            best = min(seconds(product, clock) for _ in range(repeats))
            rates.append(2 * n * k * m / best)
        return rates

    def bandwidth(self, clock):
        """Bytes per second at which an array is read, the best of some."""
        import numpy as np
        array = np.ones(NUMBERS, np.float32)
        return array.nbytes / min(seconds(array.max, clock) for _ in range(4))

    def held(self):
        """The most memory that a run takes beside what is there, in bytes."""
        self.ready.run()  # what is compiled does not count
        give_back()
        forget_peak()
        before, pool = memory("VmRSS"), self.ready.pool()
        self.ready.run()
        within = self.ready.pool()[1] - pool[0] if pool else 0
        return before and max(memory("VmHWM") - before, 0) + within

    def profile(self):
        """Where the time of a run goes; see benchmarks/profiles.py."""
        from benchmarks.profiles import profiled
        self.ready.run()
        return profiled(self.ready.run, self.libraries)

    def peak(self):
        """The most memory held since validation, in bytes."""
        return memory("VmHWM")


def main():
    """Answer requests until the pipe is closed."""
    end_with_parent()
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not enter the pipe
    far = Far(**json.loads(sys.argv[1]))
    for line in sys.stdin:
        arguments = json.loads(line)
        answer = getattr(far, arguments.pop("request"))(**arguments)
        print(json.dumps(answer), file=pipe, flush=True)


if __name__ == "__main__":
    main()
