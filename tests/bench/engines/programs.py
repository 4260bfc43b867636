"""The commands of both engines, with the limits that each of them has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.bench.engines.engine import Commands, Engine
from tests.ports import free_port

SCRAPE_S, EVALUATE_S = 15, 15
"""A minute in a cluster is a quarter of one here, so that a head is full sooner."""
ALERT = "TargetDown"
SAMPLE_LIMIT = 20_000
_PAGE_MB = 16
_CONCURRENT = 8
_QUERY_S = 10

RULES = {"groups": [{"name": "bench", "interval": f"{EVALUATE_S}s", "rules": [{"alert": ALERT, "expr": "up == 0"}]}]}


def scrape_config(port: int, count: int) -> dict[str, Any]:
    """Return a scrape of all targets, in the form that both engines read."""
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"__metrics_path__": f"/t/{number}", "target": f"t{number}"}}
        for number in range(count)
    ]
    job = {"job_name": "bench", "sample_limit": SAMPLE_LIMIT, "static_configs": targets}
    return {
        "global": {"scrape_interval": f"{SCRAPE_S}s", "scrape_timeout": f"{SCRAPE_S - 1}s"},
        "scrape_configs": [job],
    }


def _write(folder: Path, config: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(dict(config)))
    (folder / "rules.yaml").write_text(yaml.safe_dump(RULES))


def _flags(dashes: str, flags: Mapping[str, object]) -> list[str]:
    return [f"{dashes}{key}={value}" for key, value in flags.items()]


def prometheus(program: Path) -> Commands:
    """Return the command of Prometheus, which also evaluates rules."""

    def commands(engine: Engine) -> list[list[str]]:
        receiver = {
            "path_prefix": f"/{engine.name}",
            "static_configs": [{"targets": [f"127.0.0.1:{engine.targets_port}"]}],
        }
        config = scrape_config(engine.targets_port, engine.count)
        config["scrape_configs"][0]["body_size_limit"] = f"{_PAGE_MB}MB"
        config |= {
            "rule_files": ["rules.yaml"],
            "alerting": {"alertmanagers": [receiver]},
            "storage": {"tsdb": {"out_of_order_time_window": "10m"}},
        }
        _write(engine.folder, config)
        flags = {
            "config.file": "config.yaml",
            "storage.tsdb.path": engine.data,
            "storage.tsdb.retention.time": "15d",
            "web.listen-address": f"127.0.0.1:{engine.port}",
            "query.timeout": f"{_QUERY_S}s",
            "query.max-concurrency": _CONCURRENT,
            "query.max-samples": 10_000_000,
        }
        return [[str(program), "--web.enable-remote-write-receiver", *_flags("--", flags)]]

    return commands


def victoria(database: Path, evaluator: Path) -> Commands:
    """Return the commands of VictoriaMetrics, and of vmalert next to it."""

    def commands(engine: Engine) -> list[list[str]]:
        _write(engine.folder, scrape_config(engine.targets_port, engine.count))
        url = f"http://127.0.0.1:{engine.port}"
        flags = {
            "promscrape.config": "config.yaml",
            "promscrape.maxScrapeSize": f"{_PAGE_MB}MB",
            "storageDataPath": engine.data,
            "httpListenAddr": f"127.0.0.1:{engine.port}",
            "retentionPeriod": "15d",
            "search.maxQueryDuration": f"{_QUERY_S}s",
            "search.maxConcurrentRequests": _CONCURRENT,
            "search.latencyOffset": "0s",
            "storage.minFreeDiskSpaceBytes": "20MB",
            "memory.allowedBytes": engine.memory_limit * 2 // 3,
        }
        alert = {
            "rule": "rules.yaml",
            "datasource.url": url,
            "remoteRead.url": url,
            "remoteWrite.url": url,
            "notifier.url": f"http://127.0.0.1:{engine.targets_port}/{engine.name}",
            "httpListenAddr": f"127.0.0.1:{free_port()}",
        }
        return [[str(database), *_flags("-", flags)], [str(evaluator), *_flags("-", alert)]]

    return commands


def prometheus_agent(program: Path, central: Engine) -> Commands:
    """Return the command of Prometheus as an agent, which writes to another one."""

    def commands(engine: Engine) -> list[list[str]]:
        config = scrape_config(engine.targets_port, engine.count)
        _write(engine.folder, config | {"remote_write": [{"url": _receiver(central)}]})
        flags = {
            "config.file": "config.yaml",
            "storage.agent.path": engine.data,
            "web.listen-address": f"127.0.0.1:{engine.port}",
        }
        return [[str(program), "--agent", *_flags("--", flags)]]

    return commands


def victoria_agent(program: Path, central: Engine) -> Commands:
    """Return the command of vmagent, which writes to VictoriaMetrics."""

    def commands(engine: Engine) -> list[list[str]]:
        _write(engine.folder, scrape_config(engine.targets_port, engine.count))
        flags = {
            "promscrape.config": "config.yaml",
            "remoteWrite.tmpDataPath": engine.data,
            "remoteWrite.url": _receiver(central),
            "httpListenAddr": f"127.0.0.1:{engine.port}",
        }
        return [[str(program), *_flags("-", flags)]]

    return commands


def _receiver(central: Engine) -> str:
    return f"http://127.0.0.1:{central.port}/api/v1/write"
