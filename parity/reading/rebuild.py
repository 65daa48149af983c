"""Pages that another process makes while what is there is served.

A process of its own, for faults are put into the reference of this one.
"""

import contextlib
import subprocess
import sys
import threading

#: What is told before the other process has said a word.
BEGUN = "The pages are being made, which takes some minutes."


@contextlib.contextmanager
def making(reading, port_names):
    """Make a serving.Reading's site meanwhile, and tell it how far it is."""
    process = subprocess.Popen(
        [sys.executable, "-m", "parity", "read", "--rebuild",
         "--out", str(reading.folder),
         *(f"--port={name}" for name in port_names)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    reading.progress = BEGUN
    threading.Thread(
        target=follow, args=[reading, process], daemon=True).start()
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def follow(reading, process):
    """Hand on what a process says, to the terminal and to the reader."""
    for line in process.stdout:
        reading.progress = line.strip()
        print(reading.progress, flush=True)
    if not process.wait():
        reading.progress = ""
