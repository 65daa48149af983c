"""The pytest plugin: parity in tests of your own, from pytest 8 on.

pytest loads it where this project is installed; ``-p no:parity`` disables it.
It has the fixtures ``assert_parity`` and ``parity_device`` and the options
``--parity-device`` and ``--parity-require``. Its summary says how many
comparisons were made and which were closest to their limits. A test that
takes ``assert_parity`` and compares nothing fails.

Only ``--parity-require`` imports a framework, and no framework's setting is
changed: the header shows the present ones.
"""

import sys

import pytest

#: Devices that a framework can compute on.
DEVICES = ("cpu", "cuda", "mps", "tpu", "xpu")

#: How many comparisons the summary shows.
CLOSEST = 5

#: The differences of a test so far.
DIFFERENCES = pytest.StashKey[list]()

#: Port -> the modules that show its version, its settings' first.
MODULES = {
    "numpy": ("numpy",),
    "torch": ("torch",),
    "keras": ("tensorflow", "keras"),
    "jax": ("jax", "jaxlib", "flax"),
}


def pytest_addoption(parser):
    """Add the options of this plugin."""
    group = parser.getgroup("parity", "parity of frameworks")
    group.addoption(
        "--parity-device", metavar="NAME", default="cpu",
        help=f"What the fixture parity_device says: {', '.join(DEVICES)}.  "
             "[default: cpu]")
    group.addoption(
        "--parity-require", metavar="NAMES", action="append", default=[],
        help="Ports that must run, such as torch,keras,jax; end before any "
             "test otherwise.")


def pytest_configure(config):
    """End with a usage error if a required port cannot run."""
    config.pluginmanager.register(_Summary(config), "parity-summary")
    if hasattr(config, "workerinput"):  # xdist: the controller has looked
        return
    device = config.getoption("--parity-device")
    if device not in DEVICES:
        raise pytest.UsageError(
            f"--parity-device {device!r} is unknown; choose one of "
            f"{', '.join(DEVICES)}.")
    for name in required(config):
        _must_run(name, device)


def required(config):
    """The names given to --parity-require."""
    words = config.getoption("--parity-require")
    if not words:
        return []
    from parity_io.errors import InputError
    from parity import ports
    try:
        return ports.split_words(words, ports.known_ports(), "port")
    except InputError as error:
        raise pytest.UsageError(f"--parity-require: {error}") from None


def _must_run(name, device):
    from parity import ports
    for missing in ports.require([name]):
        raise pytest.UsageError(
            f"--parity-require: {name} cannot be checked, because "
            f"{missing.reason}; install it or do not require it.")
    if device not in ports.engine(name).devices():
        raise pytest.UsageError(
            f"--parity-require: {name} has no device {device} here; choose "
            "another with --parity-device.")


# The present settings

def in_force(name):
    """Versions and precision settings of a port that is loaded, as text.

    "" if none of its modules is loaded.
    """
    modules = {module: sys.modules[module] for module in MODULES[name]
               if module in sys.modules}
    versions = [f"{module} {version}" for module, library in modules.items()
                if (version := getattr(library, "__version__", None))]
    settings = [f"{setting}={value}"
                for module, library in modules.items()
                for setting, value in _settings(module, library)]
    return "; ".join(filter(None, (
        ", ".join(versions), ", ".join(settings))))


def _settings(module, framework):
    """(name, value) of the settings that decide how exact products are."""
    try:
        return list(SETTINGS.get(module, lambda framework: ())(framework))
    except Exception:  # a release without one of them, or half imported
        return []


def _torch(torch):
    yield "float32_matmul_precision", torch.get_float32_matmul_precision()
    yield "cuda.matmul.allow_tf32", torch.backends.cuda.matmul.allow_tf32
    yield "cudnn.allow_tf32", torch.backends.cudnn.allow_tf32
    yield ("deterministic_algorithms",
           torch.are_deterministic_algorithms_enabled())


def _tensorflow(tensorflow):
    yield ("tensor_float_32_execution", tensorflow.config.experimental
           .tensor_float_32_execution_enabled())


def _keras(keras):
    yield "backend", keras.config.backend()
    yield "floatx", keras.config.floatx()


def _jax(jax):
    for name in ("jax_enable_x64", "jax_default_matmul_precision"):
        yield name, getattr(jax.config, name)


SETTINGS = {"torch": _torch, "tensorflow": _tensorflow, "keras": _keras,
            "jax": _jax}


def pytest_report_header(config):
    """Versions and settings of the frameworks that are loaded."""
    lines = {name: in_force(name) for name in MODULES}
    if not any(lines[name] for name in lines if name != "numpy"):
        return []
    return ["parity: device " + config.getoption("--parity-device"),
            *(f"  {line}" for line in lines.values() if line)]


# In a test

@pytest.fixture(scope="session")
def parity_device(pytestconfig):
    """The device named by --parity-device."""
    return pytestconfig.getoption("--parity-device")


@pytest.fixture
def assert_parity(request):
    """``parity.assert_parity``; a test that never calls it fails."""
    from parity.assertions import assert_parity as asserting
    request.node.stash[DIFFERENCES] = all_differences = []

    def asserted(actual, expected, dtype=None, *, name="", **keywords):
        __tracebackhide__ = True
        differences = asserting.compared(
            actual, expected, dtype, name=name, **keywords)
        all_differences.extend(differences)
        asserting.fail_on(differences, name)
        return differences

    return asserted


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Fail a test that took the fixture and compared nothing."""
    result = yield
    if item.stash.get(DIFFERENCES, None) == []:
        pytest.fail(
            "nothing was compared: the test takes assert_parity and does not "
            "call it", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Add to a test's report what it compared."""
    report = yield
    if call.when == "call" and DIFFERENCES in item.stash:
        report.parity = _digest(item.stash[DIFFERENCES])
    return report


def _digest(differences):
    """What a test compared, as plain data for xdist's controller."""
    from parity.numerics.comparator import DIVERGENCE
    shares = [
        (float(one.error / one.limit), float(one.error), float(one.limit),
         one.name)
        for one in differences
        if one.verdict != DIVERGENCE and one.error and one.limit]
    return {
        "comparisons": len(differences),
        "diverged": sum(one.verdict == DIVERGENCE for one in differences),
        "frameworks": sorted({one.framework for one in differences}),
        "closest": sorted(shares, reverse=True)[:CLOSEST],
    }


# At the end

class _Summary:
    """Collects what tests compared, here or in xdist's workers."""

    def __init__(self, config):
        self.config = config
        self.tests = self.comparisons = self.diverged = 0
        self.frameworks, self.closest = set(), []

    def pytest_runtest_logreport(self, report):
        digest = getattr(report, "parity", None)
        if report.when != "call" or digest is None:
            return
        self.tests += 1
        self.comparisons += digest["comparisons"]
        self.diverged += digest["diverged"]
        self.frameworks.update(digest["frameworks"])
        self.closest = sorted(
            [*self.closest, *((*shared, report.nodeid)
                              for shared in digest["closest"])],
            reverse=True)[:CLOSEST]

    def pytest_terminal_summary(self, terminalreporter):
        if not self.tests:
            return
        write = terminalreporter.write_line
        terminalreporter.section("parity")
        from parity_io.errors import plural
        write(f"{plural(self.comparisons, 'comparison')} in "
              f"{plural(self.tests, 'test')} on "
              f"{self.config.getoption('--parity-device')}"
              + (f", {self.diverged} diverged" if self.diverged else ""))
        if self.closest:
            write("closest to their limits:")
        for share, error, limit, name, nodeid in self.closest:
            write(f"  {share:6.1%} of {limit:.1e}: error {error:.1e}, "
                  f"{name}, {nodeid}")
        for name in MODULES:
            if name in self.frameworks and (words := in_force(name)):
                write(words)
        for name, reason in self._not_checked():
            write(f"not checked: {name}, {reason}", yellow=True)

    def _not_checked(self):
        from parity import ports
        for name in ports.known_ports():
            if name in self.frameworks:
                continue
            yield name, (ports.missing(name)
                         or "no array of it was compared")
