"""Which conditions make a node broken, since when, and what helps."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from kubernetes import client

from cluster.repair import Action, Repair
from operations.repair import means
from operations.repair.actuators import command
from operations.repair.health import HANDS, RESET, bad, broken
from operations.repair.look import RepairStep, step_of
from operations.repair.records import RepairRecord
from operations.status import Status, StatusItem

NOW = 1_800_000_000.0
PREFLIGHT = Path(__file__).parents[2] / "roles" / "preflight" / "files" / "menagerie_preflight"


def node(*conditions: tuple[str, str, float, str, str], age_s: float = 86_400) -> client.V1Node:
    """Return a node. conditions: type, status, for how many seconds, reason, message."""
    made = [
        client.V1NodeCondition(
            type=type_, status=status, reason=reason, message=message, last_transition_time=at(NOW - lasted)
        )
        for type_, status, lasted, reason, message in conditions
    ]
    metadata = client.V1ObjectMeta(name="gpu-017", creation_timestamp=at(NOW - age_s))
    return client.V1Node(metadata=metadata, status=client.V1NodeStatus(conditions=made))


def at(unix: float) -> datetime:
    return datetime.fromtimestamp(unix, UTC)


def ready(status: str, lasted: float) -> tuple[str, str, float, str, str]:
    return ("Ready", status, lasted, "NodeStatusUnknown", "Kubelet stopped posting node status.")


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_silent_node_is_broken_after_ten_minutes_and_unhealthy_before(status: str) -> None:
    assert broken(node(ready(status, 599)), Repair(), NOW) is None
    assert len(bad(node(ready(status, 1)), Repair())) == 1
    fault = broken(node(ready(status, 600)), Repair(), NOW)
    assert fault
    assert (fault.action, fault.since) == (Action.REBOOT, NOW - 600)
    assert fault.why == "NotReady (Kubelet stopped posting node status.)"


def test_a_node_is_not_judged_while_it_starts() -> None:
    assert broken(node(ready("False", 900), age_s=1799), Repair(), NOW) is None
    assert broken(node(ready("False", 900), age_s=1800), Repair(), NOW)


def test_the_oldest_condition_sets_the_time_and_the_strongest_action_wins() -> None:
    worn = ("ReadonlyFilesystem", "True", 3600.0, "FilesystemIsReadOnly", "sda1")
    hands = ("PreflightPassed", "False", 900.0, "MemoryMissing", "1900 GiB of memory, expected 2048 GiB")
    fault = broken(node(ready("True", 9000), worn, hands), Repair(), NOW)
    assert fault
    assert (fault.since, fault.action) == (NOW - 3600, Action.TICKET)
    assert fault.why == "1900 GiB of memory, expected 2048 GiB; ReadonlyFilesystem: sda1"


@pytest.mark.parametrize(
    ("reason", "message", "action"),
    [
        (
            "XidReported",
            "GPU 0000:3b:00: Xid 79 (GPU has fallen off the bus): drain, then power-cycle the host",
            "power-cycle",
        ),
        ("XidReported", "GPU 0000:3b:00: Xid 48 (double bit ECC error): drain, then reset the GPU", "power-cycle"),
        (
            "XidReported",
            "GPU 0: Xid 64 (x): drain, then repair or replace it; GPU 1: Xid 48: drain, then reset the GPU",
            "ticket",
        ),
        ("GpuFaulty", "GPU 0: more uncorrectable SRAM errors than its threshold: replace it", "ticket"),
        ("GpuFaulty", "GPU 0: the driver asks for: Reset", "power-cycle"),
        ("GpuMissing", "7 GPUs on PCI, expected 8: power-cycle the host, then check", "power-cycle"),
        ("DriverMissing", "nvidia-smi is missing: is the driver installed?", "reboot"),
        ("LinkDown", "1 Ethernet ports up, expected 2", "ticket"),
        ("ClockSkewed", "the clock is 312 s ahead of the API server's", "ticket"),
    ],
)
def test_preflight_s_message_decides_the_action(reason: str, message: str, action: str) -> None:
    fault = broken(node(ready("True", 9000), ("PreflightPassed", "False", 600.0, reason, message)), Repair(), NOW)
    assert fault
    assert (fault.action, fault.why) == (action, message)


def test_the_wording_of_preflight_is_that_of_the_hosts() -> None:
    said = "\n".join((PREFLIGHT / name).read_text() for name in ("xid.py", "compare.py"))
    assert [words for words in (*HANDS, *RESET) if words not in said] == []
    assert '"service": "drain, then repair or replace it"' in said


def test_an_operator_s_own_condition_has_its_own_action() -> None:
    own = {"type": "MlxLinkDown", "status": "True", "after": "1m", "action": "ticket"}
    settings = Repair.model_validate({"conditions": [own]})
    fault = broken(node(ready("False", 9000), ("MlxLinkDown", "True", 60.0, "LinkDown", "mlx5_0")), settings, NOW)
    assert fault
    assert (fault.action, fault.why) == (Action.TICKET, "MlxLinkDown: mlx5_0")


def step(action: str, attempts: int, *, bmc: bool = True, region: bool = False, reinstall: bool = False) -> RepairStep:
    settings = Repair(reinstall=reinstall)
    return step_of(Action(action), RepairRecord(attempts), settings, in_region=region, has_bmc=bmc)


def test_each_repair_that_did_not_help_is_followed_by_a_stronger_one() -> None:
    assert [step("reboot", n) for n in range(4)] == [
        RepairStep.REBOOT,
        RepairStep.POWER_CYCLE,
        RepairStep.POWER_CYCLE,
        RepairStep.TICKET,
    ]
    assert [step("reboot", n, reinstall=True) for n in range(4)] == [
        RepairStep.REBOOT, RepairStep.POWER_CYCLE, RepairStep.REINSTALL, RepairStep.TICKET,
    ]  # fmt: skip
    assert [step("power-cycle", n) for n in range(4)] == [RepairStep.POWER_CYCLE] * 3 + [RepairStep.TICKET]
    assert [step("power-cycle", n, bmc=False, reinstall=True) for n in range(4)] == [RepairStep.REBOOT] * 3 + [
        RepairStep.TICKET
    ]
    assert [step("reboot", n, region=True) for n in range(4)] == [RepairStep.REPLACE] * 3 + [RepairStep.TICKET]
    assert step("ticket", 0, region=True) is RepairStep.TICKET


SCALE_SET = "azure:///subscriptions/s-1/resourceGroups/ibis/providers/Microsoft.Compute/virtualMachineScaleSets/gpu/virtualMachines/3"


@pytest.mark.parametrize(
    ("provider_id", "shown"),
    [
        (
            "aws:///us-west-2-lax-1a/i-0abc",
            (
                "aws autoscaling terminate-instance-in-auto-scaling-group --region us-west-2 --instance-id i-0abc "
                "--no-should-decrement-desired-capacity"
            ),
        ),
        (
            "gce://proj/us-central1-a/gpu-x1",
            "gcloud compute instances delete gpu-x1 --zone us-central1-a --project proj",
        ),
        (
            SCALE_SET,
            (
                "az vmss redeploy --subscription s-1 -g ibis -n gpu --instance-ids 3 && "
                "az vmss reimage --subscription s-1 -g ibis -n gpu --instance-ids 3"
            ),
        ),
        ("", "delete the machine of gpu-x1 in the cloud's console; its group creates a new one"),
    ],
)
def test_a_machine_in_a_cloud_is_replaced_with_the_clouds_own_command(provider_id: str, shown: str) -> None:
    assert command("gpu-x1", provider_id) == shown


@pytest.mark.parametrize(
    ("group", "name", "detail", "counts"),
    [
        ("etcds", "etcd-main-2", "member of main, context deadline exceeded", True),
        ("etcds", "etcd main", "etcd failed", True),
        ("api", "readyz", "failing: poststarthook/rbac", True),
        ("api", "API", "no answer: MaxRetryError", True),
        ("etcds", "etcd-events-1", "member of events, context deadline exceeded", False),
        ("etcds", "etcd events", "etcd-override-0 failed", False),
        ("etcds", "members of events", "no answer within 9 s", False),
        ("API servers", "api-1", "10.77.0.11, load balancer says DOWN", False),
        ("nodes", "worker-1", "NotReady", False),
    ],
)
def test_the_source_of_node_states_must_be_healthy_and_etcd_events_need_not(
    monkeypatch: pytest.MonkeyPatch, group: str, name: str, detail: str, counts: bool
) -> None:
    status = Status(
        "lab",
        "",
        (StatusItem(group, name, False, detail), StatusItem("etcds", "well", True, "member of main, healthy")),
    )
    monkeypatch.setattr(means, "read_status", lambda *_: status)
    assert means.control_plane(None, None) == (f"{name}: {detail}" if counts else "")  # type: ignore[arg-type]
