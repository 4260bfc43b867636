"""The drivers as tables. `components.control_plane.csi.pods` and `components.control_plane.csi.rights` have the common parts.

Arguments, paths on the host and timeouts come from the manifests that each driver's repository publishes with the version in
`cluster.versions` (deploy/kubernetes/base, or deploy), without what these clusters do not use: snapshots, taints at start,
metrics, Windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cluster import images, versions
from cluster.spec import Cloud, Cluster
from cluster.storage import has_block, has_file

NODE = "$(CSI_NODE_NAME)"
"""The node's name in arguments. Drivers that read it from the environment use the same variable."""
AZURE_FOLDER = "/etc/kubernetes"
"""Where Azure's drivers look for azure.json."""


@dataclass(frozen=True)
class Sidecar:
    """A container that talks to the API for a driver. name: also the name of its image."""

    name: str
    version: str
    arguments: tuple[str, ...] = ()


PROVISIONER = Sidecar("csi-provisioner", versions.CSI_PROVISIONER, ("--extra-create-metadata",))
ATTACHER = Sidecar("csi-attacher", versions.CSI_ATTACHER)
# Without this argument the resizer reads every pod of the cluster.
RESIZER = Sidecar("csi-resizer", versions.CSI_RESIZER, ("--handle-volume-inuse-error=false",))
REGISTRAR = Sidecar("csi-node-driver-registrar", versions.CSI_REGISTRAR)
LIVENESS = Sidecar("livenessprobe", versions.CSI_LIVENESS)


@dataclass(frozen=True)
class HostPath:
    """A folder of the host in a node plugin.

    at: its path in the container, if different. create: whether to create it if missing. shared: mounts made in the container appear on
    the host.
    """

    path: str
    at: str = ""
    create: bool = False
    shared: bool = False


KUBELET = HostPath("/var/lib/kubelet", shared=True)
DEVICES = HostPath("/dev")


@dataclass(frozen=True)
class Driver:
    """A driver for one kind of volume.

    name: in the API. short: in names of objects. sidecars: each with its timeout for one call of the driver.
    ports: for probes, on the host's loopback: of the controller, and of the node plugin. They all differ, because all these
    pods use the host's network. user: of the controller's processes; 0 if the image supports no other.
    """

    name: str
    short: str
    image: str
    ports: tuple[int, int]
    sidecars: tuple[tuple[Sidecar, str], ...]
    controller: Callable[[Cluster], tuple[str, ...]]
    node: tuple[str, ...]
    host: tuple[HostPath, ...]
    environment: Callable[[Cluster], dict[str, str]] = lambda cluster: {}
    user: int = 0
    fs_group_policy: str = "ReadWriteOnceWithFSType"
    node_memory: str | None = "1Gi"
    node_command: str = ""
    """Command of a second container of the same image on nodes; empty for none."""

    @property
    def attaches(self) -> bool:
        """Return whether a volume is attached to a machine before it is mounted."""
        return any(sidecar is ATTACHER for sidecar, _ in self.sidecars)


EBS = Driver(
    name="ebs.csi.aws.com",
    short="ebs",
    image=images.EBS,
    ports=(29600, 29601),
    sidecars=((PROVISIONER, "60s"), (ATTACHER, "6m"), (RESIZER, "60s")),
    controller=lambda cluster: (
        "controller",
        "--batching=true",
        f"--extra-tags=menagerie=true,cluster={cluster.name}",
    ),
    node=("node", "--csi-mount-point-prefix=/var/lib/kubelet/plugins/kubernetes.io/csi/ebs.csi.aws.com/"),
    # The watcher removes a taint that no node here has, and would need the right to change every Node.
    environment=lambda cluster: {"AWS_REGION": cluster.spec.control_plane.region, "DISABLE_TAINT_WATCHER": "true"},
    host=(KUBELET, DEVICES),
    user=1000,
    fs_group_policy="File",
)
EFS = Driver(
    name="efs.csi.aws.com",
    short="efs",
    image=images.EFS,
    ports=(29610, 29611),
    sidecars=((PROVISIONER, "15s"),),
    controller=lambda cluster: ("--logtostderr", f"--tags=menagerie:true cluster:{cluster.name}"),
    node=("--logtostderr",),
    host=(
        KUBELET,
        HostPath("/var/run/efs", create=True),
        HostPath("/var/amazon/efs", create=True),
        HostPath("/etc/amazon/efs", at="/etc/amazon/efs-legacy", create=True),
    ),
    # A TLS tunnel for each mount runs inside; a memory limit would kill mounts.
    node_memory=None,
)
AZURE_DISK = Driver(
    name="disk.csi.azure.com",
    short="azuredisk",
    image=images.AZURE_DISK,
    ports=(29602, 29603),
    sidecars=((PROVISIONER, "30s"), (ATTACHER, "1200s"), (RESIZER, "240s")),
    controller=lambda cluster: (
        "--allow-empty-cloud-config=false",
        "--disable-avset-nodes=true",
        "--enable-migration-monitor=false",
    ),
    # The plugin reads zone and machine type from the node's labels, so it needs no identity.
    node=(
        f"--nodeid={NODE}",
        "--allow-empty-cloud-config=true",
        "--get-node-info-from-labels=true",
        "--enable-perf-optimization=true",
        "--remove-not-ready-taint=false",
    ),
    host=(KUBELET, DEVICES, HostPath("/sys/bus/scsi/devices"), HostPath("/sys/class")),
    fs_group_policy="File",
)
AZURE_FILE = Driver(
    name="file.csi.azure.com",
    short="azurefile",
    image=images.AZURE_FILE,
    ports=(29612, 29613),
    sidecars=((PROVISIONER, "1200s"), (RESIZER, "120s")),
    controller=lambda cluster: ("--allow-empty-cloud-config=false", "--cloud-config-secret-name="),
    node=(f"--nodeid={NODE}", "--allow-empty-cloud-config=true", "--cloud-config-secret-name="),
    host=(KUBELET, DEVICES),
)
PERSISTENT_DISK = Driver(
    name="pd.csi.storage.gke.io",
    short="pd",
    image=images.PERSISTENT_DISK,
    ports=(29620, 29621),
    sidecars=((PROVISIONER, "250s"), (ATTACHER, "250s"), (RESIZER, "250s")),
    controller=lambda cluster: (
        "--run-node-service=false",
        "--supports-dynamic-iops-provisioning=hyperdisk-balanced,hyperdisk-extreme",
        "--supports-dynamic-throughput-provisioning=hyperdisk-balanced,hyperdisk-throughput,hyperdisk-ml",
        f"--extra-labels=menagerie=true,cluster={cluster.name}",
    ),
    node=("--run-controller-service=false", f"--node-name={NODE}"),
    host=(
        KUBELET,
        DEVICES,
        HostPath("/etc/udev"),
        HostPath("/lib/udev"),
        HostPath("/run/udev"),
        HostPath("/sys"),
    ),
)
FILESTORE = Driver(
    name="filestore.csi.storage.gke.io",
    short="filestore",
    image=images.FILESTORE,
    ports=(29630, 29631),
    sidecars=((PROVISIONER, "250s"), (RESIZER, "120s")),
    controller=lambda cluster: (
        "--controller=true",
        f"--nodeid={NODE}",
        f"--extra-labels=menagerie=true,cluster={cluster.name}",
    ),
    node=("--node=true", f"--nodeid={NODE}"),
    host=(KUBELET,),
    # rpcbind and statd, for NFS 3 locks.
    node_command="/nfs_services_start.sh",
)

BLOCK = {Cloud.AWS: EBS, Cloud.AZURE: AZURE_DISK, Cloud.GCP: PERSISTENT_DISK}
FILE = {Cloud.AWS: EFS, Cloud.AZURE: AZURE_FILE, Cloud.GCP: FILESTORE}


def drivers(cluster: Cluster) -> tuple[Driver, ...]:
    """Return the drivers that the spec needs; none without workers in the region."""
    spec, cloud = cluster.spec, cluster.spec.control_plane.cloud
    return (*([BLOCK[cloud]] if has_block(spec) else []), *([FILE[cloud]] if has_file(spec) else []))
