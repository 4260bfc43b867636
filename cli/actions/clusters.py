"""A built cluster: its kubeconfig, and `up` as a separate command."""

from __future__ import annotations

import subprocess
import sys

from cli.output import write_out
from cluster.errors import FailedError
from cluster.project import ROOT
from cluster.spec import Cluster
from operations import stack


def built(cluster: Cluster) -> Cluster:
    """Return the cluster. Errors: raises NotBuiltError if it has no stack."""
    if not stack.has_stack(cluster):
        raise stack.not_built(cluster)
    return cluster


def kubeconfig(cluster: Cluster) -> None:
    """Write a kubeconfig and print only its path."""
    write_out(f"{stack.access_to(cluster).write_kubeconfig()}\n")


def run_up(cluster: Cluster) -> None:
    """Run `up` as a separate command: gRPC, which Pulumi uses, does not survive a fork of its process."""
    command = [sys.executable, "-m", "cli", "up", cluster.name, "--json"]
    # Not subprocess.run, which kills the child at an interrupt: `up` gets the interrupt too, and finishes what it started.
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    _, stderr = process.communicate()
    if process.returncode:
        raise FailedError(f"up exited with {process.returncode}: {stderr.strip()}", code="repair")
