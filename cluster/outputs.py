"""ClusterOutputs: all that the cloud side tells the metal side and the operator.

Each `up` writes them anew. An older checkout leaves out fields that it does not know; a newer `version` it refuses, and with it
whatever would change the stack.

Plain data, written and read as JSON. Holds no secret: keys stay in the Pulumi state and in the
cluster's secret store.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from cluster import shared

_VERSION = 1


class _Output(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


class HostOutput(_Output):
    """A host on the cloud side."""

    name: str
    """Host name."""
    address: str
    """IPv4 address, by which the other hosts of the cluster reach it."""
    zone: str = ""
    """Zone of the region."""
    member: str = ""
    """Of an etcd's host: the name of its member of that etcd, which is another where hosts are shared."""


class EtcdOutput(_Output):
    """One etcd."""

    members: tuple[HostOutput, ...]
    """Hosts of its members."""
    client_port: int
    """TCP port for clients, on every member."""
    ca_pem: str
    """Certificate of the CA that signs this etcd's servers."""


class ArtefactOutput(_Output):
    """Where hosts download programs and images from."""

    mirror: str | None
    """Base URL of the mirror; null for the upstream sites."""
    sha256: dict[str, str]
    """`Artefact.source` -> hex digest."""
    registry: str | None
    """host:port that mirrors the image registries; null for the registries themselves."""


class BucketOutput(_Output):
    """A bucket of the cluster's, without the right to use it."""

    kind: Literal["s3", "azure", "gcs"]
    """Interface of the object storage."""
    name: str
    """Of the bucket; in Azure of the container."""
    account: str = ""
    """Azure only: the storage account that the container is in."""
    region: str = ""
    """S3 only."""
    endpoint: str | None = None
    """URL of an S3 server that is not AWS's; null for the cloud's own."""
    locked_days: int = 0
    """For how long nobody changes or deletes an object from when it was written, as the cloud has it; 0 for not at all."""


class SshOutput(_Output):
    """What SSH needs to know of hosts on the cloud side."""

    known_hosts: dict[str, str] = {}
    """Host name -> public host key line ("ssh-ed25519 AAAA..."), where the provider knows it."""


class ClusterOutputs(_Output):
    version: int = _VERSION
    """NewerDataError for one that is newer than this."""
    cluster: str
    """Name of the cluster."""
    endpoint: str
    """host:port of the API servers' load balancer: a private DNS name in a cloud, an address in the lab."""
    balancers: tuple[str, ...] = ()
    """The load balancer's addresses, for those whom the private DNS zone does not answer."""
    public_name: str | None = None
    """DNS name of the API on the internet, where the spec asks for a public endpoint; with the same port."""
    public_target: str | None = None
    """What that name must point at: addresses, joined by ", ", or a DNS name."""
    konnectivity: str
    """host:port where konnectivity agents connect."""
    ca_pem: str
    """Certificate of the Kubernetes CA."""
    serving_ca_pem: str = ""
    """Certificates of the authorities that sign kubelets' serving certificates, the one that signs first; "" of a stack from
    before they were others than the Kubernetes CA."""
    api_servers: tuple[HostOutput, ...]
    """None in a cloud, whose instance group makes and replaces them."""
    etcds: dict[str, EtcdOutput]
    """The etcds of the cluster."""
    artefacts: ArtefactOutput
    ssh: SshOutput = SshOutput()
    buckets: dict[str, BucketOutput] = {}
    """Use -> bucket: ``backups`` and ``audit-logs``, which keep what is written against being deleted, and ``records``, which does not."""
    vpn_gateways: dict[str, tuple[str, ...]] = {}
    """Edge router, as ``<site>/<router>`` -> public addresses of the gateway's ends that its tunnels lead to, in order."""
    vpn_names: dict[str, tuple[str, ...]] = {}
    """Edge router -> subjects of the certificates of those ends, in order, where the router has a certificate."""
    load_balancer_status: str | None = None
    """URL of the load balancer's backend states, where the provider offers one (haproxy CSV)."""
    spec_sha256: str = ""
    """`Cluster.digest` of what was built; "" of a stack from before it was kept."""

    @model_validator(mode="before")
    @classmethod
    def _is_readable(cls, said: object) -> object:
        return shared.readable("what the stack says of the cluster", said, _VERSION)
