"""`status`: the state of a running cluster. Reads only."""

from operations.status.addons import ADDONS
from operations.status.balancer import balancer_states, servers_down
from operations.status.model import Item, Status
from operations.status.nodes import REGION
from operations.status.read import not_well, read_status, running

__all__ = [
    "ADDONS",
    "REGION",
    "Item",
    "Status",
    "balancer_states",
    "not_well",
    "read_status",
    "running",
    "servers_down",
]
