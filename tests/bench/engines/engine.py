"""The two engines as processes: their settings, and what both answer in Prometheus' HTTP API."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.ports import free_port

Commands = Callable[["Engine"], list[list[str]]]
SCRAPE_S, EVALUATE_S = 1, 5
SAMPLE_LIMIT = 20_000
ALERT = "TargetDown"


def scrape_config(port: int, count: int) -> dict[str, Any]:
    """Return a scrape of all targets. Both engines read this form."""
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"__metrics_path__": f"/t/{number}", "target": f"t{number}"}}
        for number in range(count)
    ]
    job = {"job_name": "bench", "scrape_timeout": "1s", "sample_limit": SAMPLE_LIMIT, "static_configs": targets}
    return {"global": {"scrape_interval": f"{SCRAPE_S}s"}, "scrape_configs": [job]}


RULES = {"groups": [{"name": "bench", "interval": f"{EVALUATE_S}s", "rules": [{"alert": ALERT, "expr": "up == 0"}]}]}


@dataclass
class Engine:
    """One engine. programs: names of its programs -> files. data: its folder."""

    name: str
    folder: Path
    targets_port: int
    count: int
    commands: Commands
    port: int = field(default_factory=free_port)
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.running = [
                subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder) for command in self.commands(self)
            ]

    def stop(self, *, kill: bool = False) -> None:
        for process in self.running:
            process.kill() if kill else process.terminate()
        for process in self.running:
            process.wait(120)

    def is_running(self) -> bool:
        return all(process.poll() is None for process in self.running)

    def memory(self) -> int:
        """Return the anonymous memory of its processes in bytes, which the kernel cannot reclaim."""
        return sum(_anonymous(process.pid) for process in self.running)

    def get(self, path: str, query: Mapping[str, str], timeout_s: float = 60) -> Any:
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            return json.load(answer)

    def value(self, query: str, at: float | None = None) -> float:
        """Return the only value of an instant query; 0 without any."""
        result = self.get("/api/v1/query", {"query": query} | ({"time": str(at)} if at else {}))["data"]["result"]
        return float(result[0]["value"][1]) if result else 0.0

    def missed(self, began: float, ended: float, but: int = 0) -> float:
        """Return how many scrapes lack between two times. but: targets that were told to fail."""
        seconds = int(ended - began)
        have = self.value(f"sum(count_over_time(up[{seconds}s]))", ended)
        failed = have - self.value(f"sum(sum_over_time(up[{seconds}s]))", ended)
        return self.count * seconds / SCRAPE_S - have + max(0.0, failed - but * seconds / SCRAPE_S)


def _anonymous(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def prometheus(program: Path) -> Commands:
    """Return the command of Prometheus, which also evaluates rules."""

    def commands(engine: Engine) -> list[list[str]]:
        alertmanager = {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{engine.targets_port}"]}]}]}
        config = scrape_config(engine.targets_port, engine.count)
        config |= {"rule_files": ["rules.yaml"], "alerting": alertmanager}
        _write(engine.folder, config)
        flags = {
            "config.file": "config.yaml",
            "storage.tsdb.path": "data",
            "web.listen-address": f"127.0.0.1:{engine.port}",
            "query.timeout": "10s",
            "query.max-concurrency": "8",
            "query.max-samples": "10000000",
            "web.max-connections": "512",
        }
        words = [f"--{key}={value}" for key, value in flags.items()]
        return [[str(program), "--web.enable-remote-write-receiver", *words]]

    return commands


def victoria(database: Path, evaluator: Path) -> Commands:
    """Return the commands of VictoriaMetrics, and of vmalert next to it."""

    def commands(engine: Engine) -> list[list[str]]:
        _write(engine.folder, scrape_config(engine.targets_port, engine.count))
        url = f"http://127.0.0.1:{engine.port}"
        flags = {
            "promscrape.config": "config.yaml",
            "storageDataPath": "data",
            "httpListenAddr": f"127.0.0.1:{engine.port}",
            "retentionPeriod": "15d",
            "search.maxQueryDuration": "10s",
            "search.maxConcurrentRequests": "8",
            "search.maxSeries": "30000",
            "search.latencyOffset": "0s",
            "storage.minFreeDiskSpaceBytes": "20MB",
            "memory.allowedBytes": "512MB",
            "promscrape.maxScrapeSize": "16MB",
        }
        alert = {
            "rule": "rules.yaml",
            "datasource.url": url,
            "notifier.url": f"http://127.0.0.1:{engine.targets_port}",
            "httpListenAddr": f"127.0.0.1:{free_port()}",
        }
        return [
            [str(database), *(f"-{key}={value}" for key, value in flags.items())],
            [str(evaluator), *(f"-{key}={value}" for key, value in alert.items())],
        ]

    return commands


def prometheus_agent(program: Path, central: Engine) -> Commands:
    """Return the command of Prometheus as an agent, which writes to another one."""

    def commands(engine: Engine) -> list[list[str]]:
        config = scrape_config(engine.targets_port, engine.count)
        _write(engine.folder, config | {"remote_write": [{"url": f"http://127.0.0.1:{central.port}/api/v1/write"}]})
        words = [
            "--config.file=config.yaml",
            "--storage.agent.path=data",
            f"--web.listen-address=127.0.0.1:{engine.port}",
        ]
        return [[str(program), "--agent", *words]]

    return commands


def victoria_agent(program: Path, central: Engine) -> Commands:
    """Return the command of vmagent, which writes to VictoriaMetrics."""

    def commands(engine: Engine) -> list[list[str]]:
        _write(engine.folder, scrape_config(engine.targets_port, engine.count))
        url = f"http://127.0.0.1:{central.port}/api/v1/write"
        words = ["-promscrape.config=config.yaml", "-remoteWrite.tmpDataPath=data", f"-remoteWrite.url={url}"]
        return [[str(program), *words, f"-httpListenAddr=127.0.0.1:{engine.port}"]]

    return commands


def _write(folder: Path, config: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(dict(config)))
    (folder / "rules.yaml").write_text(yaml.safe_dump(RULES))


def wait(true: Callable[[], object], seconds: float, every_s: float = 0.2) -> float | None:
    """Return the seconds until something is true; None if it is not within `seconds`. Errors of HTTP count as false."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        try:
            if true():
                return time.monotonic() - began
        except OSError:
            pass
        time.sleep(every_s)
    return None
