"""Entry point for the plain Pulumi CLI: ``pulumi up -s <cluster>``."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pulumi

from cluster.errors import MenagerieError
from cluster.spec import Cluster
from operations.plain import refuse_or_warn
from operations.readiness import refuse_unready
from stacks.plain import main, outputs


def _refuse(cluster: Cluster, environment: Mapping[str, str]) -> None:
    warn = pulumi.log.warn if pulumi.runtime.is_dry_run() else None
    try:
        refuse_unready(cluster, environment, plugin=False)  # it is installed before this runs; see docs/how-to/ci.md
        refuse_or_warn(cluster, lambda: outputs(_ROOT), environment, warn)
    except MenagerieError as error:
        raise pulumi.RunError(str(error)) from None


_ROOT = Path(__file__).resolve().parent
# runpy removes a program's folder from sys.path when its top level has run; the clouds' packages are imported later.
sys.path.insert(0, str(_ROOT))
main(_ROOT, _refuse)
