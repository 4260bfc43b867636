"""Who may read metrics of hosts: the one client that endpoints of nodes answer."""

from __future__ import annotations

SAN = "metrics.menagerie.internal"
"""The DNS name in its certificate. Endpoints of nodes look for it, because their programs know no other names."""
USER = "menagerie:metrics"
"""Its user in the API, the certificate's common name."""
