# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the examples print while they work."""
import time


class Clock:
    """Prints what is being done, and how long it took."""

    def __init__(self, text):
        print(f"{text:<72}", end="", flush=True)

    def __enter__(self):
        self.begin = time.perf_counter()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            print(f"{time.perf_counter() - self.begin:6.1f} s", flush=True)
