"""What a run computed with: versions, devices, settings, threads."""

import os
import platform

from parity.numerics.canary import canary
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


def describe(engines, settings, devices):
    """The environment as plain data.

    Args:
        engines: port -> engine, those that are used.
        settings: port -> what its set_precision set.
        devices: the devices asked for.
    """
    described = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "blas": blas(),
        "ports": {"numpy": {"versions": engine("numpy").versions()}},
    }
    for name, port in engines.items():
        there = port.devices()
        described["ports"][name] = {
            "versions": port.versions(),
            "devices": there,
            "precision": settings[name],
            "canary_eps": {device: canary(port, device)
                           for device in devices if device in there},
        }
    return described
