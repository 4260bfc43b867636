"""The pages as a controller. Every pod serves them, so there is no Lease and no leader."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NoReturn

from clients import telemetry
from clients.telemetry import Answer, Pages, wellness
from cluster.errors import MenagerieError
from controllers.program.access import PodAccess
from controllers.web.app import application
from controllers.web.delivered import PORT, TLS, Certificate
from controllers.web.facts import Site
from controllers.web.guards import CONNECTIONS, ClusterGuard
from controllers.web.inside import Inside, explain
from controllers.web.parts import Reader
from controllers.web.reading import ClusterReader, reading
from controllers.web.serving import listening, serving

log = logging.getLogger(__name__)
STUCK_S = 600.0
"""After a reading that takes so long, a kubelet should restart the process."""
_LOOK_S = 30.0
"""Between two looks at the certificate's file."""


def serve(spec: Path, secrets: Path, listen: str, port: int, pause: Callable[[float], None] = time.sleep) -> NoReturn:
    """Serve the pages until `pause` raises. listen, port: for /healthz and /readyz.

    Without a certificate the pages are on loopback alone: `kubectl port-forward` gets there, other pods don't. Tokens of people
    never cross a network in clear.
    """
    access = PodAccess()
    inside = Inside(spec, secrets, access)
    reader = ClusterReader(inside.spec().cluster.name, inside, explain)
    certificate = Certificate(secrets) if (secrets / TLS).is_file() else None
    with ExitStack() as resources:
        site = Site(resources.enter_context(reading([reader])), time.time)
        guard = ClusterGuard(partial(access.api, once=True, connections=CONNECTIONS), teams=site.team_namespaces)
        listener = listening("0.0.0.0" if certificate else "127.0.0.1", PORT)
        tls = certificate.context if certificate else None
        resources.enter_context(serving(application(site, guard), listener, tls))
        resources.enter_context(telemetry.serving(health(reader.readers, time.time), listen, port))
        log.info(
            "serving pages %s",
            "over TLS" if certificate else "to kubectl port-forward only: web.certificate is not set",
        )
        troubles: dict[str, str] = {}
        while True:
            pause(_LOOK_S)
            troubles = _logged(reader.readers, troubles)
            if certificate:
                _renewed(certificate)


def health(readers: Sequence[Reader[object]], clock: Callable[[], float]) -> Pages:
    """Return the pages /healthz and /readyz. clock: Unix time."""

    def alive() -> Answer:
        began = [reader.part.began_s for reader in readers]
        longest_s = max((clock() - each for each in began if each is not None), default=0.0)
        return wellness(longest_s <= STUCK_S, f"the longest reading has taken {longest_s:.0f} s")

    def ready() -> Answer:
        lacking = [reader.name for reader in readers if reader.part.at_s is None and not reader.part.problem]
        return wellness(not lacking, f"not read yet: {', '.join(lacking)}" if lacking else "every part was read")

    return {"/healthz": alive, "/readyz": ready}


def _logged(readers: Sequence[Reader[object]], before: dict[str, str]) -> dict[str, str]:
    """Log each problem when it appears, and return those of now."""
    now = {reader.name: reader.part.problem for reader in readers if reader.part.problem}
    for name, problem in now.items():
        if before.get(name) != problem:
            log.warning("%s can't be read: %s", name, problem)
    return now


def _renewed(certificate: Certificate) -> None:
    try:
        if certificate.renew():
            log.info("the certificate was replaced")
    except (MenagerieError, OSError) as error:
        log.error("the new certificate can't be used, and the former one stays: %s", error)
