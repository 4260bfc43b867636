"""Inputs that Google Cloud refuses, each with its right form. They were written without a look at simcloud's rules and tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sandbox.simcloud.rules import RefusalError
from tests.simcloud.gcp_support import Project, policy_rules

Changes = Callable[[Project], dict[str, Any]]


@pytest.fixture
def project(api: Any) -> Project:
    return Project(api("gcp"))


def _with(**changes: Any) -> Changes:
    return lambda _: changes


def _logged(interval: str) -> Changes:
    return _with(logConfig={"aggregationInterval": interval, "flowSampling": 0.5, "metadata": "INCLUDE_ALL_METADATA"})


def _mapped(independent: bool) -> Changes:
    return _with(
        enableDynamicPortAllocation=True,
        enableEndpointIndependentMapping=independent,
        minPortsPerVm=64,
        maxPortsPerVm=4096,
    )


def _for(output: str) -> Changes:
    return lambda project: policy_rules({"targetServiceAccounts": [project.of("account", output)]})(project)


def _interface(kind: str) -> Changes:
    return lambda project: {"networkInterfaces": [{"subnetwork": project["subnetwork"].id, "nicType": kind}]}


def _ports(number: int) -> Changes:
    return _with(ports=[str(6443 + more) for more in range(number)])


def _cipher(name: str) -> Changes:
    return _with(cipherSuite={"phase2": {"encryptions": [name]}})


def _updated(**more: str) -> Changes:
    return _with(
        updatePolicy={
            "type": "OPPORTUNISTIC",
            "minimalAction": "REPLACE",
            "maxSurgeFixed": 1,
            "maxUnavailableFixed": 0,
            **more,
        }
    )


SIGNING = {"purpose": "ASYMMETRIC_SIGN", "versionTemplate": {"algorithm": "EC_SIGN_P256_SHA256"}}
NEAR = {"groupPlacementPolicy": {"collocation": "COLLOCATED"}, "snapshotSchedulePolicy": None}

# What, its page or report, kind, wrong changes, right changes, words of the refusal.
ROWS: list[tuple[str, str, str, Changes, Changes, str]] = [
    ("a rule for a member, not an e-mail address", "firewallPolicies: targetServiceAccounts", "firewall policy",
     _for("member"), _for("email"), "without serviceAccount:"),
    ("a public address in a subnetwork", "addresses: subnetwork is for internal ones", "public address",
     lambda p: {"addressType": "EXTERNAL", "subnetwork": p["subnetwork"].id}, _with(addressType="EXTERNAL"),
     "External addresses have none"),
    ("a hyphen in the name of an endpoint of APIs", "Access Google APIs through endpoints: 1 to 20 letters and digits",
     "endpoint of Google's APIs", _with(name="google-apis"), _with(name="googleapis"), "1 to 20 characters"),
    ("six ports of a forwarding rule", "forwardingRules: ports, up to five", "forwarding rule", _ports(6), _ports(5),
     "At most 5 ports"),
    ("healthy after eleven probes", "Health checks overview: 1 to 10", "health check",
     _with(healthyThreshold=11), _with(healthyThreshold=10), "less than or equal to 10"),
    ("an interface VIRTIO", "instances: networkInterfaces[].nicType", "regional template",
     _interface("VIRTIO"), _interface("VIRTIO_NET"), "use one of GVNIC"),
    ("a label with a capital letter", "Organize resources using labels", "instance",
     _with(labels={"Role": "etcd-main"}), _with(labels={"role": "etcd-main"}), "violates format constraints"),
    ("provisioned IOPS of pd-balanced", "disks: provisionedIops", "disk",
     _with(type="pd-balanced", provisionedIops=5000), _with(type="hyperdisk-balanced", provisionedIops=5000),
     "Not supported by disk type"),
    ("two policies in one", "resourcePolicies: one of these", "policy",
     _with(**NEAR, workloadPolicy={"type": "HIGH_THROUGHPUT"}), _with(**NEAR), "a policy has one kind"),
    ("a private zone that is signed", "DNS Security Extensions (DNSSEC) overview: public zones", "zone",
     _with(dnssecConfig={"state": "on"}), _with(dnssecConfig={"state": "off"}), "only be enabled on public zones"),
    ("a secret's name with slashes", "Create a secret: letters, digits, hyphens, underscores", "secret",
     _with(secretId="menagerie/apes/ca"), _with(secretId="menagerie-apes-ca"), "doesn't match regexp"),
    ("a permission to list projects in a project's role", "terraform-google-modules/terraform-google-iam 158", "role",
     _with(permissions=["compute.instances.get", "resourcemanager.projects.list"]),
     _with(permissions=["compute.instances.get", "resourcemanager.projects.get"]), "is not valid"),
    ("a role that does not exist", "Secret Manager roles and permissions", "binding of a secret",
     _with(role="roles/secretmanager.secretReader"), _with(role="roles/secretmanager.secretAccessor"),
     "not supported for this resource"),
    ("a cipher under another name", "Supported IKE ciphers", "tunnel",
     _cipher("AES-256-GCM-16"), _cipher("AES-GCM-16-256"), "such as AES-GCM-16-256"),
    ("logs to gs://", "sinks: destination", "log sink",
     lambda p: {"destination": f"gs://{p['bucket'].id}"}, lambda p: {"destination": f"storage.googleapis.com/{p['bucket'].id}"},
     "such as storage.googleapis.com"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "changes", "words"), [(*row[2:4], row[5]) for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_what_google_refuses_is_refused(project: Project, kind: str, changes: Changes, words: str) -> None:
    with pytest.raises(RefusalError, match=words):
        project.make(kind, **changes(project))


@pytest.mark.parametrize(("kind", "changes"), [(row[2], row[4]) for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_right_form_is_accepted_by_google(project: Project, kind: str, changes: Changes) -> None:
    assert project.make(kind, **changes(project)).id
