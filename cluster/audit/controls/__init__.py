"""The controls, as data: one YAML file a section of the CIS Kubernetes Benchmark 1.12, and one of our own.

IDs, levels and what is asked are the benchmark's; the words are ours.
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
"""Start of IDs -> what it is about."""


@cache
def controls() -> tuple[Control, ...]:
    """All, in the benchmark's order, ours last. ValueError where the data is not as `cluster.audit.model` has it."""
    files = sorted(Path(__file__).parent.glob("*.yaml"))
    return tuple(Control.model_validate(each) for file in files for each in yaml.safe_load(file.read_text()))


def section(control: Control) -> str:
    """The key in `SECTIONS`."""
    return next(each for each in SECTIONS if f"{control.id}.".startswith(f"{each}."))
