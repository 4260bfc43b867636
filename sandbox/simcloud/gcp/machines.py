"""Rules for instances of Google Cloud and their templates."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.catalogue import of
from cluster.spec import Cloud
from sandbox.simcloud.changes import changes
from sandbox.simcloud.gcp.addresses import busy, first_free, fits, literal, subnetwork_of, used
from sandbox.simcloud.gcp.common import NAME, bare, last, network_of
from sandbox.simcloud.gcp.tokens import NETWORK
from sandbox.simcloud.gcp.words import invalid
from sandbox.simcloud.rules import Call, RefusalError
from sandbox.simcloud.values import Properties, Value, at, plain

# "About VM metadata": a value has at most 256 KiB, all of them 512 KiB.
_MOST_METADATA = 512 * 1024
_MOST_TAGS = 64
_SCRATCH_GB = (375, 3000, 3500, 7000, 14000)
# Properties for which terraform-provider-google requires the instance to be stopped.
_STOPPED = (
    *("machineType", "minCpuPlatform", "serviceAccount", "enableDisplay", "shieldedInstanceConfig"),
    *("scheduling.nodeAffinities", "advancedMachineFeatures", "networkInterfaces[].network"),
    *("networkInterfaces[].subnetwork", "networkInterfaces[].subnetworkProject"),
)


def metadata(call: Call) -> None:
    """Check the size of metadata values, including user data."""
    most = of(Cloud.GCP).user_data.max_bytes
    values = {**(call.inputs.get("metadata") or {}), "startup-script": call.text("metadataStartupScript")}
    sizes = {key: len(str(value).encode()) for key, value in values.items()}
    for i, (key, size) in enumerate(sizes.items()):
        if size > most:
            raise invalid(
                f"metadata.items[{i}].value", f"{key}: {size} bytes", f"Metadata values have at most {most} bytes.",
                "pass a reference, and fetch the rest at boot",
            )  # fmt: skip
    if sum(sizes.values()) > _MOST_METADATA:
        raise invalid(
            "metadata",
            f"{sum(sizes.values())} bytes",
            f"All metadata has at most {_MOST_METADATA} bytes.",
            "shorten it",
        )


def tags(call: Call) -> None:
    """Check that network tags have the format of machine names, and are unique."""
    texts = [str(text) for text in at(call.inputs, "tags[]")]
    wrong = next((text for text in texts if not NAME.pattern.fullmatch(text)), None)
    if wrong is not None:
        raise invalid(
            "tags.items", wrong, f"Must be a match of regex '{NAME.pattern.pattern}'.", "name tags like machines"
        )
    if len(texts) > _MOST_TAGS or len(set(texts)) < len(texts):
        raise invalid("tags.items", str(len(texts)), f"At most {_MOST_TAGS}, no two alike.", "leave some out")


def scheduling(call: Call) -> None:
    """Check that spot machines do not restart, and machines with GPUs do not migrate ("GPU machine types", "Spot VMs")."""
    settings = call.inputs.get("scheduling") or {}
    spot = settings.get("provisioningModel") == "SPOT" or settings.get("preemptible")
    if spot and settings.get("automaticRestart", True):
        raise invalid(
            "scheduling.preemptible", "true", "Scheduling must have preemptible be false when AutomaticRestart is true.",
            "set automaticRestart to false",
        )  # fmt: skip
    if settings.get("provisioningModel") == "SPOT" and settings.get("preemptible") is False:
        raise invalid("scheduling.provisioningModel", "SPOT", "It needs preemptible.", "set preemptible to true")
    if _gpus(call) and not spot and settings.get("onHostMaintenance") != "TERMINATE":
        raise RefusalError(
            "googleapi: Error 400: Instances with guest accelerators do not support live migration., badRequest; "
            "set scheduling.onHostMaintenance to TERMINATE",
            "scheduling",
        )


def _gpus(call: Call) -> bool:
    machine = of(Cloud.GCP).machine_types.get(last(call.text("machineType")))
    own = bool(machine and machine.type and machine.type.gpus)
    return own or any(int(row.get("count") or 0) for row in at(call.inputs, "guestAccelerators[]"))


def disks(call: Call) -> None:
    """Check that only the first disk of a template is the boot disk, and local disks are SCRATCH with an allowed size."""
    for i, row in enumerate(at(call.inputs, "disks[]")):
        if i and row.get("boot"):
            raise RefusalError(
                f"Only the first disk specified in instance_template can be the boot disk. disk.{i}.boot was true; "
                "put it first",
                "disks",
            )
        scratch, local = row.get("type") == "SCRATCH", last(str(row.get("diskType", ""))) == "local-ssd"
        if scratch != local:
            raise RefusalError(
                f"SCRATCH disks must have a disk_type of local-ssd. disk {i} has disk_type {row.get('diskType')}; "
                "set both or neither",
                "disks",
            )
        if scratch and row.get("diskSizeGb") not in _SCRATCH_GB:
            raise RefusalError(
                f"SCRATCH disks must be one of {_SCRATCH_GB} GB, disk {i} is {row.get('diskSizeGb')}; use one of them",
                "disks",
            )


def interfaces(call: Call) -> None:
    """Check that each interface is in a subnetwork of its network, with a free address."""
    for i, row in enumerate(at(call.inputs, "networkInterfaces[]")):
        field = f"networkInterfaces[{i}]"
        subnetwork = subnetwork_of(call, str(row.get("subnetwork", "")))
        for network in call.world.find((NETWORK,), bare(call, str(row.get("network", "")))):
            custom = network.inputs.get("autoCreateSubnetworks") is False
            if subnetwork is None and custom:
                raise invalid(
                    field, "", "Subnetwork should be specified for custom subnetmode network", "set subnetwork"
                )
            if subnetwork and network_of(call, subnetwork) != network.id:
                raise invalid(
                    field,
                    subnetwork.id,
                    f'Subnetwork is not valid for Network "{network.id}".',
                    "leave the network out",
                )
        address = literal(str(row.get("networkIp", "")))
        if subnetwork and address:
            fits(call, f"{field}.networkIP", address, subnetwork)
            for other, by in used(call, subnetwork):
                if other == str(address):
                    raise busy(address, by)


def shown_interfaces(call: Call) -> list[Properties]:
    """Return the interfaces with their addresses, given or chosen by Google."""
    return list(_shown(call))


def _shown(call: Call) -> Iterator[Properties]:
    before = list(at(plain(call.old.outputs), "networkInterfaces[]")) if call.old else []
    given: list[str] = []
    for i, row in enumerate(at(call.inputs, "networkInterfaces[]")):
        subnetwork = subnetwork_of(call, str(row.get("subnetwork", "")))
        old = before[i] if i < len(before) else {}
        previous = old.get("subnetwork") == row.get("subnetwork") and old.get("networkIp")
        address = (
            row.get("networkIp") or previous or (first_free(call, subnetwork, given) if subnetwork else "10.128.0.2")
        )
        given.append(str(address))
        network = subnetwork.inputs["network"] if subnetwork else row.get("network", "")
        yield {"name": f"nic{i}", "network": network, **row, "networkIp": address}


def moves(old: Value, new: Value) -> bool:
    """Whether interfaces are added, removed, or change their address within a subnetwork, which forces replacement."""
    befores, afters = list(old or ()), list(new or ())
    if len(befores) != len(afters):
        return True
    return any(
        after.get("networkIp") not in (None, "", before.get("networkIp"))
        and all(before.get(name) == after.get(name) for name in ("network", "subnetwork", "subnetworkProject"))
        for before, after in zip(befores, afters, strict=True)
    )


def stopped(call: Call) -> None:
    """Refuse changes that need a stopped instance; the provider stops one only if allowed to."""
    if call.old is None or call.inputs.get("allowStoppingForUpdate") or call.text("desiredStatus") == "TERMINATED":
        return
    wrong = next((change.path for change in changes(call.old.inputs, call.inputs) if change.is_within(_STOPPED)), None)
    if wrong:
        raise RefusalError(
            f"Changing the machine_type, min_cpu_platform, service_account, enable_display, shielded_instance_config, "
            "scheduling.node_affinities or network_interface.[#d].(network/subnetwork/subnetwork_project) or "
            "advanced_machine_features on a started instance requires stopping it. To acknowledge this, please set "
            f"allow_stopping_for_update = true in your config.; {wrong} changes: set allowStoppingForUpdate to true",
            wrong,
        )
