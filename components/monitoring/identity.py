"""Who may read metrics of hosts. The constants are in the model, because roles of workers need them too."""

from __future__ import annotations

from cluster.metrics.identity import SAN, USER

__all__ = ["SAN", "USER"]
