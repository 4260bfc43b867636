"""Health of a running cluster, part by part. Reads only."""

from operations.status.addons import ADDONS
from operations.status.model import Status, StatusItem
from operations.status.nodes import REGION

# What reads a whole status, with an operator's credentials, is in `read`: the controllers' image has no clients for that.
__all__ = ["ADDONS", "REGION", "Status", "StatusItem"]
