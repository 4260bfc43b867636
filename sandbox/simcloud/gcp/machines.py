"""What machines of Google Cloud and their templates may say."""

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
# What terraform-provider-google says of each must stop the machine.
_STOPPED = (
    *("machineType", "minCpuPlatform", "serviceAccount", "enableDisplay", "shieldedInstanceConfig"),
    *("scheduling.nodeAffinities", "advancedMachineFeatures", "networkInterfaces[].network"),
    *("networkInterfaces[].subnetwork", "networkInterfaces[].subnetworkProject"),
)


def metadata(call: Call) -> None:
    """Values of metadata fit, user data among them."""
    most = of(Cloud.GCP).user_data.max_bytes
    values = {**(call.inputs.get("metadata") or {}), "startup-script": call.text("metadataStartupScript")}
    sizes = {key: len(str(value).encode()) for key, value in values.items()}
    for i, (key, size) in enumerate(sizes.items()):
        if size > most:
            raise invalid(
                f"metadata.items[{i}].value", f"{key}: {size} bytes", f"Metadata values have at most {most} bytes.",
                "hand over a reference, and fetch the rest at boot",
            )  # fmt: skip
    if sum(sizes.values()) > _MOST_METADATA:
        raise invalid(
            "metadata",
            f"{sum(sizes.values())} bytes",
            f"All metadata has at most {_MOST_METADATA} bytes.",
            "shorten it",
        )


def tags(call: Call) -> None:
    """Network tags are named as machines, and no two are alike."""
    found = [str(text) for text in at(call.inputs, "tags[]")]
    wrong = next((text for text in found if not NAME.pattern.fullmatch(text)), None)
    if wrong is not None:
        raise invalid(
            "tags.items", wrong, f"Must be a match of regex '{NAME.pattern.pattern}'.", "a tag is named as a machine"
        )
    if len(found) > _MOST_TAGS or len(set(found)) < len(found):
        raise invalid("tags.items", str(len(found)), f"At most {_MOST_TAGS}, no two alike.", "leave some out")


def scheduling(call: Call) -> None:
    """Spot machines do not restart; machines with GPUs do not move ("GPU machine types", "Spot VMs")."""
    says = call.inputs.get("scheduling") or {}
    spot = says.get("provisioningModel") == "SPOT" or says.get("preemptible")
    if spot and says.get("automaticRestart", True):
        raise invalid(
            "scheduling.preemptible", "true", "Scheduling must have preemptible be false when AutomaticRestart is true.",
            "set automaticRestart to false",
        )  # fmt: skip
    if says.get("provisioningModel") == "SPOT" and says.get("preemptible") is False:
        raise invalid("scheduling.provisioningModel", "SPOT", "It needs preemptible.", "set preemptible to true")
    if _gpus(call) and not spot and says.get("onHostMaintenance") != "TERMINATE":
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
    """Only the first disk of a template is the boot disk; local ones are SCRATCH, of given sizes."""
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
    """Each interface is in a subnetwork of its network, with an address of it that nothing else has."""
    for i, row in enumerate(at(call.inputs, "networkInterfaces[]")):
        field = f"networkInterfaces[{i}]"
        found = subnetwork_of(call, str(row.get("subnetwork", "")))
        for network in call.world.find((NETWORK,), bare(call, str(row.get("network", "")))):
            custom = network.inputs.get("autoCreateSubnetworks") is False
            if found is None and custom:
                raise invalid(
                    field, "", "Subnetwork should be specified for custom subnetmode network", "set subnetwork"
                )
            if found and network_of(call, found) != network.id:
                raise invalid(
                    field, found.id, f'Subnetwork is not valid for Network "{network.id}".', "leave the network out"
                )
        address = literal(str(row.get("networkIp", "")))
        if found and address:
            fits(call, f"{field}.networkIP", address, found)
            for other, by in used(call, found):
                if other == str(address):
                    raise busy(address, by)


def shown_interfaces(call: Call) -> list[Properties]:
    """Interfaces with the addresses that they have, by themselves or by Google's choice."""
    return list(_shown(call))


def _shown(call: Call) -> Iterator[Properties]:
    before = list(at(plain(call.old.outputs), "networkInterfaces[]")) if call.old else []
    given: list[str] = []
    for i, row in enumerate(at(call.inputs, "networkInterfaces[]")):
        found = subnetwork_of(call, str(row.get("subnetwork", "")))
        old = before[i] if i < len(before) else {}
        stays = old.get("subnetwork") == row.get("subnetwork") and old.get("networkIp")
        address = row.get("networkIp") or stays or (first_free(call, found, given) if found else "10.128.0.2")
        given.append(str(address))
        network = found.inputs["network"] if found else row.get("network", "")
        yield {"name": f"nic{i}", "network": network, **row, "networkIp": address}


def moves(old: Value, new: Value) -> bool:
    """Interfaces come, go, or get another address in the same subnetwork: that takes another machine."""
    befores, afters = list(old or ()), list(new or ())
    if len(befores) != len(afters):
        return True
    return any(
        after.get("networkIp") not in (None, "", before.get("networkIp"))
        and all(before.get(name) == after.get(name) for name in ("network", "subnetwork", "subnetworkProject"))
        for before, after in zip(befores, afters, strict=True)
    )


def stopped(call: Call) -> None:
    """Some changes are made to machines that do not run, and the provider stops none unasked."""
    if call.old is None or call.inputs.get("allowStoppingForUpdate") or call.text("desiredStatus") == "TERMINATED":
        return
    wrong = next((each.path for each in changes(call.old.inputs, call.inputs) if each.is_within(_STOPPED)), None)
    if wrong:
        raise RefusalError(
            f"Changing the machine_type, min_cpu_platform, service_account, enable_display, shielded_instance_config, "
            "scheduling.node_affinities or network_interface.[#d].(network/subnetwork/subnetwork_project) or "
            "advanced_machine_features on a started instance requires stopping it. To acknowledge this, please set "
            f"allow_stopping_for_update = true in your config.; {wrong} changes: set allowStoppingForUpdate to true",
            wrong,
        )
