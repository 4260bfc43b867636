"""Errors that somebody foresaw: what to print, a word for machines, and the exit code.

Imports every package, so it is itself imported only once something has failed.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import Any

import urllib3
from kubernetes.client.exceptions import ApiException
from typer.exceptions import TyperException

from cli import exits
from cli.exits import NotConfirmedError
from cli.output import OutputError
from clients.access import NotBuiltError
from clients.agent_client import AgentError
from clients.etcd_client import EtcdError
from clients.lease import HeldError, LostTheLockError
from clients.waiting import TimedOutError
from cluster.load import SpecError
from cluster.problems import Problem
from cluster.reading import UnreadableError
from cluster.shared import NewerDataError
from cluster.writing import ForeignFileError
from controllers.autoscaler.choose import NoAutoscalerError
from controllers.autoscaler.groups import GroupError
from controllers.autoscaler.simulate.run import UnknownSizeError
from controllers.autoscaler.simulate.trace import TraceError
from controllers.expander.errors import ExpanderError
from controllers.gather import NoImageError, NotCarriedError
from controllers.tenancy.directory.model import DirectoryError, NoPoliciesError, NoTenancyError
from inventories.matching import NothingMatches
from inventories.run import RunFailed
from network.roce.plan import NothingToTest
from network.roce.results import OtherPlanError
from operations.backups import NoBackupsError, NotBackedUpError
from operations.build import KeepsDataError
from operations.configure import WorkersError
from operations.drain import OutOfServiceError
from operations.etcds.roll import RollStoppedError
from operations.etcds.snapshots import RefusedError
from operations.gateways import DisagreementError, NoRouterError, UnknownGatewayError
from operations.keys.encryption import StillEncryptsError
from operations.keys.kubelets import KubeletsBehindError
from operations.keys.pods import PodsBehindError
from operations.keys.rings import ForeignRingsError
from operations.keys.rotation import NotYetError, NoWayBackError, UnfinishedError
from operations.keys.service_account import TokensInSecretsError
from operations.machines import MachinesError, NotInstalledError
from operations.plugins import PluginError
from operations.provisioning.machines import NothingToProvisionError
from operations.provisioning.reports import ReportsError
from operations.provisioning.trust import TrustError
from operations.readiness import NotReadyError
from operations.reboot import RebootsError
from operations.record import LockedError, NotHeldError, RecordStoreError, TakenOverError
from operations.repair.look import UnknownHostError
from operations.router_certificates import CertificateError
from operations.stack import NoKeyError, UnknownSecretError
from operations.upgrade.guard import OtherReleaseError
from operations.upgrade.run import HostsError, NotUpgradableError, StoppedError
from operations.verify.proof import RepairError
from operations.verify.run import UnknownProofError
from sandbox.lab.errors import ForeignLabError, LabError, PreflightError
from stacks.errors import BackendError, OtherStateError, PassphraseError, StackError, StackLockedError
from tools.build import BuildError
from tools.golang import GoMissing
from tools.oci.debian import ImageError
from tools.releases import DownloadError

# Error -> (word for machines, exit code). The first that fits counts.
_KINDS: tuple[tuple[type[BaseException], str, int], ...] = (
    (SpecError, "bad-spec", exits.BAD_INPUT),
    (UnreadableError, "unreadable", exits.BAD_INPUT),
    (NewerDataError, "newer-data", exits.BAD_INPUT),
    (ForeignFileError, "foreign-file", exits.BAD_INPUT),
    (OutputError, "output", exits.FAILED),
    (NothingMatches, "nothing-matches", exits.BAD_INPUT),
    (UnknownProofError, "unknown-proof", exits.BAD_INPUT),
    (NotReadyError, "not-ready", exits.BAD_INPUT),
    (KeepsDataError, "keeps-data", exits.BAD_INPUT),
    (OtherReleaseError, "other-release", exits.BAD_INPUT),
    (NotUpgradableError, "upgrade-refused", exits.BAD_INPUT),
    (UnknownSecretError, "unknown-secret", exits.BAD_INPUT),
    (PassphraseError, "passphrase", exits.BAD_INPUT),
    (BackendError, "state-unreadable", exits.STATE_UNREADABLE),
    (OtherStateError, "other-state", exits.BAD_INPUT),
    (NoBackupsError, "no-backups", exits.BAD_INPUT),
    (NothingToTest, "no-rdma", exits.BAD_INPUT),
    (OtherPlanError, "other-plan", exits.BAD_INPUT),
    (NoRouterError, "no-router", exits.BAD_INPUT),
    (NoTenancyError, "no-tenancy", exits.BAD_INPUT),
    (NoImageError, "no-image", exits.BAD_INPUT),
    (NotCarriedError, "not-carried", exits.BAD_INPUT),
    (ImageError, "image", exits.FAILED),
    (NoPoliciesError, "no-policies", exits.FAILED),
    (DirectoryError, "directory", exits.FAILED),
    (ExpanderError, "expander", exits.BAD_INPUT),
    (NoAutoscalerError, "no-autoscaler", exits.BAD_INPUT),
    (TraceError, "bad-trace", exits.BAD_INPUT),
    (UnknownSizeError, "unknown-size", exits.BAD_INPUT),
    (HeldError, "locked", exits.LOCKED),
    (LostTheLockError, "taken-over", exits.LOCKED),
    (GroupError, "groups", exits.FAILED),
    (NoKeyError, "no-key", exits.BAD_INPUT),
    (DisagreementError, "disagreement", exits.BAD_INPUT),
    (CertificateError, "bad-certificate", exits.BAD_INPUT),
    (UnknownGatewayError, "unknown-gateway", exits.BAD_INPUT),
    (NothingToProvisionError, "nothing-to-provision", exits.BAD_INPUT),
    (TrustError, "bmc-trust", exits.BAD_INPUT),
    (MachinesError, "machines-refused", exits.BAD_INPUT),
    (OutOfServiceError, "pods-would-be-lost", exits.BAD_INPUT),
    (UnknownHostError, "unknown-host", exits.BAD_INPUT),
    (NoWayBackError, "no-way-back", exits.BAD_INPUT),
    (UnfinishedError, "not-as-its-spec", exits.BAD_INPUT),
    (ForeignRingsError, "foreign-rings", exits.BAD_INPUT),
    (NotYetError, "not-yet", exits.FAILED),
    (KubeletsBehindError, "kubelets-behind", exits.FAILED),
    (PodsBehindError, "pods-behind", exits.FAILED),
    (TokensInSecretsError, "endless-tokens", exits.FAILED),
    (StillEncryptsError, "still-encrypts", exits.FAILED),
    (ReportsError, "reports", exits.FAILED),
    (HostsError, "workers-failed", exits.FAILED),
    (StoppedError, "upgrade-stopped", exits.FAILED),
    (ForeignLabError, "foreign-lab", exits.LOCKED),
    (StackLockedError, "locked", exits.LOCKED),
    (LockedError, "locked", exits.LOCKED),
    (TakenOverError, "taken-over", exits.LOCKED),
    (NotHeldError, "not-held", exits.BAD_INPUT),
    (RecordStoreError, "no-record", exits.FAILED),
    (PreflightError, "machine-unfit", exits.FAILED),
    (LabError, "lab", exits.FAILED),
    (PluginError, "plugin", exits.FAILED),
    (StackError, "stack", exits.FAILED),
    (NotBuiltError, "not-built", exits.FAILED),
    (TimedOutError, "timed-out", exits.FAILED),
    (RunFailed, "ansible", exits.FAILED),
    (RefusedError, "etcd-refused", exits.BAD_INPUT),
    (RollStoppedError, "roll-stopped", exits.FAILED),
    (EtcdError, "etcd", exits.FAILED),
    (NotBackedUpError, "not-backed-up", exits.FAILED),
    (AgentError, "etcd-agent", exits.FAILED),
    (RepairError, "repair", exits.FAILED),
    (BuildError, "programs", exits.FAILED),
    (DownloadError, "programs", exits.FAILED),
    (GoMissing, "no-go", exits.FAILED),
)

_WHICH_PART = (
    "\n  `./menagerie status` of the cluster shows which part is down; "
    'docs/start/lab.md, "When something does not come up", says where to look then'
)


@dataclass(frozen=True)
class Foreseen:
    """text: for people. kind: for machines; it stays as it is when the text changes."""

    text: str
    exit_code: int
    kind: str
    problems: tuple[Problem, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The document that a verb prints with --json when it fails."""
        found: dict[str, Any] = {"code": self.kind, "text": self.text, "exit_code": self.exit_code}
        if self.problems:
            found["problems"] = [problem.to_json() for problem in self.problems]
        return {"error": found}


def explain(error: Exception) -> Foreseen | None:
    """What to say about an error, None when nobody foresaw it."""
    if isinstance(error, TyperException):
        return Foreseen(_usage(error), error.exit_code, "usage")
    if isinstance(error, NotConfirmedError):
        return Foreseen(str(error), exits.FAILED if error.declined else exits.BAD_INPUT, "not-confirmed")
    if isinstance(error, WorkersError | RebootsError | NotInstalledError):
        what = "machines" if isinstance(error, NotInstalledError) else "workers"
        if error.unreachable:
            return Foreseen(str(error), exits.UNREACHABLE, f"{what}-unreachable")
        return Foreseen(str(error), exits.FAILED, f"{what}-failed")
    if isinstance(error, ApiException):
        return Foreseen(f"the API server answers {error.status} {error.reason}: {error.body}", exits.FAILED, "api")
    if isinstance(error, urllib3.exceptions.HTTPError):
        return Foreseen(f"the API server does not answer: {error}{_WHICH_PART}", exits.FAILED, "api-unreachable")
    if isinstance(error, OSError):
        return _of_the_machine(error)
    for kind, word, code in _KINDS:
        if isinstance(error, kind):
            text = f"{error}{_WHICH_PART}" if kind is TimedOutError else str(error)
            return Foreseen(text, code, word, tuple(getattr(error, "problems", ())))
    return None


def _usage(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "menagerie"
    text = error.format_message().rstrip(".")
    if not text and context:  # no verb was given; its help page is above
        text = f"choose {' or '.join(context.command.list_commands(context))}"
    return f"{text}\n  see: {command} --help"


def _of_the_machine(error: OSError) -> Foreseen | None:
    """Rights, space and paths: what an operator mends without knowing the code."""
    if error.errno in (errno.EACCES, errno.EPERM):
        what = f": {error.filename}" if error.filename else ""
        text = f"you may not do that on this machine{what}; run the command as the user who built the cluster, or root"
        return Foreseen(text, exits.FAILED, "permission")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f" at {error.filename}" if error.filename else ""
        text = f"no space is left{where}; `df -h` shows which disk is full: free some and run the same command again"
        return Foreseen(text, exits.FAILED, "no-space")
    if error.errno == errno.EROFS:
        where = f" at {error.filename}" if error.filename else ""
        text = f"the file system{where} is read-only; run the command from a checkout that you may write to"
        return Foreseen(text, exits.FAILED, "read-only")
    if error.filename and error.strerror:
        return Foreseen(f"{os.fsdecode(error.filename)}: {error.strerror}", exits.FAILED, "file")
    return None
