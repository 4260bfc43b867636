"""Entry point for the plain Pulumi CLI: ``pulumi up -s <cluster>``."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pulumi

from cluster.errors import RefusedError
from cluster.spec import Cluster
from operations.readiness import refuse_unready
from stacks.plain import main


def _refuse(cluster: Cluster, environment: Mapping[str, str]) -> None:
    try:
        refuse_unready(cluster, environment, plugin=False)  # it is installed before this runs; see docs/how-to/ci.md
    except RefusedError as error:
        raise pulumi.RunError(str(error)) from None


_ROOT = Path(__file__).resolve().parent
# runpy removes a program's folder from sys.path when its top level has run; the clouds' packages are imported later.
sys.path.insert(0, str(_ROOT))
main(_ROOT, _refuse)
