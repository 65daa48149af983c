import numpy as np

ALONE = {"query": "query's bias missing", "value": "value's bias missing",
         "scores": "scores over √d_model"}


def fault_of(sound, faulty):
    first = next(name for name in sound if np.linalg.norm(
        faulty[name] - sound[name]) > 1e-12 * np.linalg.norm(sound[name]))
    if first in ALONE:
        return ALONE[first]
    gap = faulty[first] - sound[first]
    if first == "weights":
        hidden = sound["weights"] == 0
        if faulty["weights"][hidden].any():
            return "attention without its mask"
        return "softmax over queries"
    rows = gap.reshape(-1, gap.shape[-1])  # a bias moves all of them alike
    if np.abs(rows - rows[0]).max() < 1e-9:
        return "output's bias missing"
    return "output kernel transposed"
