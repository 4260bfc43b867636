"""metrics-relay on control-plane hosts (`cluster.metrics.host.relay`): whom it answers, its settings, and its program as a file.

The etcds' hosts and API servers have the same program, so it is here, below both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from cluster.controllers import home
from cluster.files import HostFile
from cluster.programs import without_words
from cluster.spec import Cluster

NAME = "metrics-relay"
"""Name of its unit, its account and its common name."""
SCRAPER = "metrics.menagerie.internal"
"""The only alternative name of the scraper's client certificate. Nothing resolves it. Other clients of `kubernetes-ca` have none:
kubelets may not request one (pkg/apis/certificates, ValidateKubeletClientCSR), and kubeadm issues none."""
CA, CERTIFICATE, KEY = "ca.crt", "relay.crt", "relay.key"
"""Credentials of its unit: the authorities of the scraper's certificate and of API servers, and its own pair."""
_MODULE = "menagerie_relay"
_LIBRARY = "/usr/local/lib/menagerie"
PROGRAM = f"{_LIBRARY}/{_MODULE}.py"
_HERE = Path(__file__).resolve().parent


def pool(cluster: Cluster) -> str | None:
    """Return the pool whose hosts run the scraper: that of the controllers. None if there is no scraper, and so no relay."""
    return home(cluster) if cluster.spec.monitoring.enabled else None


def program() -> HostFile:
    """Return the program as a file."""
    return HostFile(PROGRAM, without_words((_HERE / "host" / "relay.py").read_text()))


def command(settings_path: str) -> tuple[str, ...]:
    """Return the command of the unit."""
    return ("/usr/bin/python3", "-sB", PROGRAM, settings_path)


def settings(address: str, port: int, upstreams: Mapping[str, str], unverified: tuple[str, ...] = ()) -> str:
    """Return JSON for the program.

    address: that it listens on. upstreams: job -> URL of the program's metrics. unverified: jobs whose programs have a certificate
    that nothing signed.
    """
    values = {
        "address": address,
        "port": port,
        "client": SCRAPER,
        "upstreams": dict(upstreams),
        "unverified": list(unverified),
    }
    return json.dumps(values, indent=1, sort_keys=True) + "\n"
