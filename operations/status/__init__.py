"""Health of a running cluster, part by part. Reads only."""

from operations.status.addons import ADDONS
from operations.status.balancer import balancer_states, servers_down
from operations.status.model import Status, StatusItem
from operations.status.nodes import REGION
from operations.status.read import read_status, running, unhealthy_parts

__all__ = [
    "ADDONS",
    "REGION",
    "Status",
    "StatusItem",
    "balancer_states",
    "read_status",
    "running",
    "servers_down",
    "unhealthy_parts",
]
