"""One engine of metrics as processes that are started again when they end, and its HTTP API, which is Prometheus' in both."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.engines.scrapes import Samples, parsed
from tests.ports import free_port

Commands = Callable[["Engine"], list[list[str]]]
BACK_OFF_S = 5.0
"""A process that ends is started again after this time."""


@dataclass
class Engine:
    """An engine. targets_port, count: where its targets listen, and how many it scrapes. memory_limit: bytes for Go's heap."""

    name: str
    folder: Path
    targets_port: int
    count: int
    commands: Commands
    memory_limit: int
    port: int = field(default_factory=free_port)
    restarts: int = 0
    _commands: list[list[str]] = field(default_factory=list)
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _is_up: threading.Event = field(default_factory=threading.Event)
    _keeper: threading.Thread | None = None

    @property
    def disk(self) -> Path:
        """Where a file system of limited size may be mounted."""
        return self.folder / "disk"

    @property
    def data(self) -> Path:
        return self.disk / "data"

    @property
    def disk_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.data.rglob("*") if file.is_file())

    def start(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        self._commands = self.commands(self)
        self._running = [self._run(command) for command in self._commands]
        self._is_up.set()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _run(self, command: list[str]) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "GOMEMLIMIT": str(self.memory_limit)}
        with Path(f"{self.folder}.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, env=environment)

    def _keep(self) -> None:
        while self._is_up.is_set():
            for place, process in enumerate(self._running):
                if process.poll() is not None:
                    time.sleep(BACK_OFF_S)
                    if not self._is_up.is_set():
                        return
                    self._running[place] = self._run(self._commands[place])
                    self.restarts += 1
            time.sleep(0.2)

    def stop(self, *, kill: bool = False) -> None:
        self._is_up.clear()
        for process in self._running:
            process.kill() if kill else process.terminate()
        for process in self._running:
            process.wait(120)
        if self._keeper:
            self._keeper.join()

    def memory(self) -> int:
        """Return the anonymous memory of its processes in bytes, which the kernel can't reclaim."""
        return sum(_anonymous(process.pid) for process in self._running)

    def cpu_s(self) -> float:
        """Return the CPU seconds of its processes (proc(5), stat: utime and stime in ticks of 10 ms)."""
        stats = [Path(f"/proc/{each.pid}/stat").read_text().rpartition(")")[2].split() for each in self._running]
        return sum(int(each[11]) + int(each[12]) for each in stats) / 100

    def get(self, path: str, query: Mapping[str, str], timeout_s: float = 60) -> Any:
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            return json.load(answer)

    def value(self, query: str, at: float | None = None) -> float:
        """Return the only value of an instant query; 0 without any."""
        result = self.get("/api/v1/query", {"query": query} | ({"time": str(at)} if at else {}))["data"]["result"]
        return float(result[0]["value"][1]) if result else 0.0

    def samples(self, selector: str, began: float, ended: float) -> Samples:
        """Return the samples of a selector between two times, by the label `target`."""
        query = {"query": f"{selector}[{int(ended - began)}s]", "time": str(ended)}
        return parsed(self.get("/api/v1/query", query)["data"]["result"])


def _anonymous(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def wait(true: Callable[[], object], seconds: float, every_s: float = 0.2) -> float | None:
    """Return the seconds until something is true; None if it is not within `seconds`. Errors of HTTP count as false."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        with suppress(OSError):
            if true():
                return time.monotonic() - began
        time.sleep(every_s)
    return None
