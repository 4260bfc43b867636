"""The controls, as data: one YAML file per section of the CIS Kubernetes Benchmark 1.12, and one with our own.

IDs, levels and requirements are the benchmark's; the wording is ours.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from cluster.audit.model import Control

SECTIONS = {
    "1.1": "files of the control plane",
    "1.2": "kube-apiserver",
    "1.3": "kube-controller-manager",
    "1.4": "kube-scheduler",
    "2": "etcd, main and events",
    "3": "authentication and audit log",
    "4.1": "files of workers",
    "4.2": "kubelets",
    "4.3": "kube-proxy",
    "5": "policies",
    "M": "our own",
}
"""Prefix of IDs -> subject of the section."""


@cache
def controls() -> tuple[Control, ...]:
    """Return all controls in the benchmark's order, ours last. Raises ValueError if the data doesn't fit the model."""
    files = sorted(Path(__file__).parent.glob("*.yaml"))
    return tuple(Control.model_validate(control) for file in files for control in yaml.safe_load(file.read_text()))


def section(control: Control) -> str:
    """Return the control's key in `SECTIONS`."""
    return next(prefix for prefix in SECTIONS if f"{control.id}.".startswith(f"{prefix}."))
