"""Limits of Google Cloud on machines, their templates, and groups of them. Each names the page of the documentation that has it."""

from __future__ import annotations

import re

from cluster.disks import takes
from cluster.spec import Cloud
from sandbox.simcloud.limits import Condition, Limit, between, distinct, has, needed_if, one_of, only_if, shaped, where
from sandbox.simcloud.values import Properties, Value, at

# "About Local SSD disks": numbers of disks by series and vCPUs; others have any, or as many as their type says.
_SCRATCH = {"n1": (1, 2, 3, 4, 5, 6, 7, 8, 16, 24), "n2": (1, 2, 4, 8, 16, 24), "n2d": (1, 2, 4, 8, 16, 24)}
_WITHOUT_SCRATCH = ("e2", "t2d", "t2a", "n4", "n4a", "n4d")
# "Choose a disk type": what cannot be a boot disk.
_KINDS = re.compile(
    r"pd-(standard|balanced|ssd|extreme)|hyperdisk-(balanced(-high-availability)?|extreme|throughput|ml)|local-ssd"
)
_NOT_BOOTABLE = ("hyperdisk-extreme", "hyperdisk-throughput", "hyperdisk-ml", "local-ssd")
_C3 = re.compile(r"(c3|c3d|m3|z3|h3)-")
# "GPU machine types": GPUs are attached to N1 only; other types come with theirs.
_MACHINE = r"(.*/)?([a-z]\w*-[a-z]\w*-\d\w*(-\w+)*|e2-(micro|small|medium)|e2-custom-(micro|small|medium)-\d+|custom-\d+-\d+(-ext)?|f1-micro|g1-small)"
# "Confidential VM: supported configurations".
_CONFIDENTIAL = ("n2d", "c2d", "c3", "c3d", "c4d", "a3", "g4")
# "Access scopes for OAuth 2.0": by address, or by one of gcloud's aliases.
_SCOPE = r"https://www\.googleapis\.com/auth/[\w./-]+|cloud-platform|[a-z]+(-[a-z]+)+|userinfo-email|bigquery|datastore|monitoring|pubsub|sql|taskqueue|trace"

# "ServiceAccount" (IAM): an address without a member's prefix.
EMAIL = r"[^@:\s]+@[^@:\s]+"
ADDRESSED = "write an e-mail address, without serviceAccount:"


def last(text: Value) -> str:
    return str(text).rpartition("/")[2]


def _series(machine: Properties) -> str:
    return last(machine.get("machineType", "")).partition("-")[0]


def boots(path: str, kind: str, of_boot: Condition = bool) -> Limit:
    """Limit the boot disk's type to those that the machine takes ("Choose a disk type")."""

    def fits(machine: Properties) -> bool:
        type_ = last(machine.get("machineType", ""))
        kinds = [last(disk.get(kind, "")) for disk in at(machine, path) if disk.get(kind) and of_boot(disk)]
        return all(
            _KINDS.fullmatch(name)
            and name not in _NOT_BOOTABLE
            and takes(Cloud.GCP, type_, name)
            and not (name == "pd-standard" and _C3.match(type_))
            for name in kinds
        )

    return only_if("machineType", fits, f"it does not boot from the type at {path}.{kind}: choose another type of disk")


def takes_scratch(machine: Properties) -> bool:
    number, series = len(machine["scratchDisks"]), _series(machine)
    return series not in _WITHOUT_SCRATCH and number in _SCRATCH.get(series, (number,))


def _gpus_attach(machine: Properties) -> bool:
    return _series(machine) in ("n1", "") or last(machine.get("machineType", "")).startswith(
        ("a2", "a3", "a4", "g2", "g4")
    )


def _is_spot(scheduling: Properties) -> bool:
    return scheduling.get("provisioningModel") == "SPOT" or bool(scheduling.get("preemptible"))


def _fast_enough(machine: Properties) -> bool:
    """Whether a machine has the 30 vCPUs or more that Tier_1 needs ("Configure per VM Tier_1 networking performance")."""
    digits = re.search(r"-(\d+)(-|$)", last(machine.get("machineType", "")))
    tier = next(at(machine, "networkPerformanceConfig.totalEgressBandwidthTier"), "DEFAULT")
    return tier != "TIER_1" or digits is None or int(digits[1]) >= 30


# "VM instance lifecycle", "Spot VMs", "About VM metadata", "Consuming reserved instances".
MACHINES: tuple[Limit, ...] = (
    shaped("machineType", _MACHINE, "use a type such as n2-standard-4"),
    only_if(
        "scheduling.instanceTerminationAction",
        lambda given: (
            _is_spot(given)
            or given.get("maxRunDuration")
            or given.get("terminationTime")
            or given.get("provisioningModel") in ("FLEX_START", "RESERVATION_BOUND")
        ),
        "only spot machines and those with a limited run have a termination action",
    ),
    only_if(
        "scheduling.onHostMaintenance",
        lambda given: not _is_spot(given) or given["onHostMaintenance"] == "TERMINATE",
        "spot machines terminate",
    ),
    only_if(
        "confidentialInstanceConfig",
        lambda machine: _series(machine) in ("", *_CONFIDENTIAL),
        f"only {', '.join(_CONFIDENTIAL)} are confidential",
    ),
    only_if("guestAccelerators", _gpus_attach, "only N1 machines take GPUs; other types come with theirs"),
    only_if("networkPerformanceConfig", _fast_enough, "TIER_1 needs 30 vCPUs or more"),
    one_of("networkInterfaces[].nicType", "GVNIC", "VIRTIO_NET", "IDPF", "MRDMA", "IRDMA"),
    distinct("networkInterfaces[].subnetwork"),
    one_of("scheduling.provisioningModel", "STANDARD", "SPOT", "FLEX_START", "RESERVATION_BOUND"),
    one_of("scheduling.onHostMaintenance", "MIGRATE", "TERMINATE"),
    one_of("scheduling.instanceTerminationAction", "STOP", "DELETE"),
    one_of("reservationAffinity.type", "ANY_RESERVATION", "SPECIFIC_RESERVATION", "NO_RESERVATION"),
    # "About Local SSD disks".
    one_of("scratchDisks[].interface", "NVME", "SCSI"),
    one_of("scratchDisks[].size", 375, 3000),
    distinct("attachedDisks[].deviceName"),
    one_of("advancedMachineFeatures.threadsPerCore", 1, 2),
    where(
        "metadata",
        lambda given: all(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", str(key)) for key in given),
        "keys have 1 to 128 letters, digits, _ and -",
    ),
    shaped("serviceAccount.email", rf"default|{EMAIL}", ADDRESSED),
    shaped(
        "serviceAccount.scopes[]", _SCOPE, "write an address such as https://www.googleapis.com/auth/cloud-platform"
    ),
    shaped(
        "minCpuPlatform",
        # Only their shape: each series of machines may bring a new one.
        r"(Intel|AMD|Ampere|Google|NVIDIA)( [A-Z][a-zA-Z]*)+",
        "use a platform such as Intel Ice Lake",
    ),
    needed_if("reservationAffinity.specificReservation", has("type", "SPECIFIC_RESERVATION"), "say which reservation"),
    only_if(
        "reservationAffinity.specificReservation",
        has("type", "SPECIFIC_RESERVATION"),
        "only SPECIFIC_RESERVATION names one",
    ),
    one_of("reservationAffinity.specificReservation.key", "compute.googleapis.com/reservation-name"),
)
# From the mildest.
_ACTIONS = ("NONE", "REFRESH", "RESTART", "REPLACE")


def _allows_its_least(policy: Properties) -> bool:
    least, most = policy.get("minimalAction"), policy["mostDisruptiveAllowedAction"]
    return least not in _ACTIONS or most not in _ACTIONS or _ACTIONS.index(least) <= _ACTIONS.index(most)


# "Resource: InstanceGroupManager".
GROUPS: tuple[Limit, ...] = (
    between("updatePolicy.minReadySec", 0, 3600),
    one_of("updatePolicy.type", "PROACTIVE", "OPPORTUNISTIC"),
    one_of("updatePolicy.minimalAction", *_ACTIONS),
    one_of("updatePolicy.mostDisruptiveAllowedAction", *_ACTIONS),
    only_if("updatePolicy.mostDisruptiveAllowedAction", _allows_its_least, "it is at least minimalAction"),
    where(
        "versions",
        lambda versions: sum(not version.get("targetSize") for version in versions) == 1,
        "exactly one version has no targetSize",
    ),
    between("autoHealingPolicies.initialDelaySec", 0, 3600),
    between("targetSize", 0, 4000),
    one_of("distributionPolicyTargetShape", "EVEN", "BALANCED", "ANY", "ANY_SINGLE_ZONE"),
    only_if(
        "updatePolicy.maxSurgePercent",
        lambda given: given.get("maxSurgeFixed") is None,
        "give maxSurgeFixed or maxSurgePercent",
    ),
    only_if(
        "updatePolicy.maxUnavailablePercent",
        lambda given: given.get("maxUnavailableFixed") is None,
        "give maxUnavailableFixed or maxUnavailablePercent",
    ),
)
