"""What the flags of several programs on an API-server host have in common: flag name without dashes -> value.

CIS numbers are those of the Kubernetes benchmark 1.12; tests/control_plane/test_cis.py has one test for each.
Flags are on the command line because kube-bench looks there. systemd expands ``${...}``.
"""

from __future__ import annotations

from cluster.tls import CIPHER_SUITES

Flags = dict[str, str]

TLS = {"tls-cipher-suites": ",".join(CIPHER_SUITES), "tls-min-version": "VersionTLS12"}


def elected(kubeconfig: str) -> Flags:
    """Return the flags that the controller manager and the scheduler share: leader election, and serving on loopback only."""
    return {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        **TLS,
        "profiling": "false",
        "leader-elect": "true",
    }
