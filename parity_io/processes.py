"""Processes that others begin."""

import multiprocessing
import os
import threading
import time

#: Every how many seconds it is seen whether the other process is there.
EVERY = 1.0


def end_with_parent():
    """End this process soon after the one that began it, however that ends.

    What is at work for minutes, such as a compiler, does not see before it is
    done that nobody asks any more.
    """
    number, parent = os.getppid(), multiprocessing.parent_process()

    def watch():
        if parent is not None:
            parent.join()
        else:
            while os.getppid() == number:
                time.sleep(EVERY)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
