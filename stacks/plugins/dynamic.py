"""Serves dynamic resources for as long as the engine that started it lives.

A killed engine does not stop its plugins, and `pulumi.dynamic` would keep running forever.
"""

from __future__ import annotations

import os
import runpy
import threading
import time

_EVERY_S = 1.0


def _end_with(parent: int) -> None:
    # 1: the engine died before this thread started.
    while os.getppid() == parent != 1:
        time.sleep(_EVERY_S)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    runpy.run_module("pulumi.dynamic", run_name="__main__", alter_sys=True)
