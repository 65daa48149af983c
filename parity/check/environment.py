"""What a run computed with: versions, devices, settings, threads."""

import os
import platform

from parity import compiled
from parity.check import port_calls
from parity.ports import engine


def blas():
    """The BLAS libraries at hand: [{"library", "architecture", "threads"}]."""
    from threadpoolctl import threadpool_info
    return [{
        "library": " ".join(filter(None, (
            info["internal_api"], info.get("version")))),
        "architecture": info.get("architecture"),
        "threads": info["num_threads"],
    } for info in threadpool_info() if info["user_api"] == "blas"]


def describe(report, devices):
    """The environment as plain data.

    Args:
        report: a Report whose ports are open.
        devices: the devices asked for.
    """
    described = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "blas": blas(),
        "xla_flags": os.environ.get(compiled.OPTIONS, "")
        if report.engines.keys() & {"jax", "keras"} else "",
        "ports": {"numpy": {"versions": engine("numpy").versions()}},
    }
    replies = {name: port.ask("starting", port_calls.facts, [
        device for device in devices if device in report.devices[name]],
        threads=None)
        for name, port in report.engines.items()}
    for name, future in replies.items():
        # A port that fails at this has it among the report's failures.
        versions, canaries = future.result().value or ({}, {})
        described["ports"][name] = {
            "versions": versions,
            "devices": report.devices[name],
            "precision": report.settings[name],
            "canary_eps": canaries,
        }
    return described
