"""ClusterOutputs: everything that a stack hands over to the on-prem side and to operators.

Each `up` rewrites them. An older checkout ignores fields that it doesn't know. It refuses a newer `version`, and then any
change of the stack.

Plain data, written and read as JSON. They contain no secret: keys stay in the Pulumi state and in the cluster's
secret store.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from cluster import shared
from cluster.model import Described

_VERSION = 1


class _Output(Described, BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class HostOutput(_Output):
    """A host in the region."""

    name: str
    """Host name."""
    address: str
    """IPv4 address at which other hosts of the cluster reach it."""
    zone: str = ""
    """Zone of the region."""
    member: str = ""
    """Only for hosts of an etcd: name of its member, which differs from the host's if etcds share hosts."""


class EtcdOutput(_Output):
    """One etcd."""

    members: tuple[HostOutput, ...]
    """Hosts of the members."""
    client_port: int
    """TCP port for clients, on every member."""
    ca_pem: str
    """Certificate of the CA that signs the server certificates of this etcd."""


class ArtefactOutput(_Output):
    """Where hosts download programs and images from."""

    mirror: str | None
    """Base URL of the mirror; null for the upstream sites."""
    sha256: dict[str, str]
    """`Artefact.source` -> hex digest."""
    registry: str | None
    """host:port of a mirror of the image registries; null for the registries themselves."""


class BucketOutput(_Output):
    """A bucket of the cluster, without credentials."""

    kind: Literal["s3", "azure", "gcs"]
    """API of the object storage."""
    name: str
    """Name of the bucket, or on Azure of the container."""
    account: str = ""
    """Only on Azure: the container's storage account."""
    region: str = ""
    """Only for S3: the bucket's region."""
    endpoint: str | None = None
    """URL of an S3 server other than AWS's; null for the cloud's own."""
    locked_days: int = 0
    """For how many days after writing the cloud protects an object from changes and deletion; 0 for none."""


class SshOutput(_Output):
    """What SSH needs for hosts in the region."""

    known_hosts: dict[str, str] = {}
    """Host name -> public host key line ("ssh-ed25519 AAAA..."), if the provider knows it."""


class ClusterOutputs(_Output):
    version: int = _VERSION
    """Version of the format. Reading a newer one raises NewerDataError."""
    cluster: str
    """Name of the cluster."""
    endpoint: str
    """host:port of the API servers' load balancer: a private DNS name in a cloud, an address in the lab."""
    balancers: tuple[str, ...] = ()
    """The load balancer's addresses, for clients that can't use the private DNS zone."""
    public_name: str | None = None
    """DNS name of the API on the internet, if the spec has a public endpoint. The port is the same."""
    public_target: str | None = None
    """What that name must point to: addresses joined by ", ", or a DNS name."""
    konnectivity: str
    """host:port where konnectivity agents connect."""
    ca_pem: str
    """Certificate of the Kubernetes CA."""
    serving_ca_pem: str = ""
    """Certificates of the CAs for kubelets' serving certificates, the signing one first; "" from stacks of releases that
    used the Kubernetes CA."""
    api_servers: tuple[HostOutput, ...]
    """API servers. Empty in a cloud, whose instance group creates and replaces them."""
    etcds: dict[str, EtcdOutput]
    """The etcds of the cluster."""
    artefacts: ArtefactOutput
    ssh: SshOutput = SshOutput()
    buckets: dict[str, BucketOutput] = {}
    """Use -> bucket: ``backups`` and ``audit-logs``, which protect objects from deletion, and ``records``, which doesn't."""
    vpn_gateways: dict[str, tuple[str, ...]] = {}
    """Edge router, as ``<site>/<router>`` -> public addresses of the gateway's ends of its tunnels, in order."""
    vpn_names: dict[str, tuple[str, ...]] = {}
    """Edge router -> certificate subjects of those ends, in order, if the router has a certificate."""
    load_balancer_status: str | None = None
    """URL of the load balancer's backend states (haproxy CSV), if the provider has one."""
    spec_sha256: str = ""
    """`Cluster.digest` of what was built; "" from stacks of releases without it."""

    @model_validator(mode="before")
    @classmethod
    def _is_readable(cls, data: object) -> object:
        return shared.readable("the document of the stack's outputs", data, _VERSION)
