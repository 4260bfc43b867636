"""Plans from real runs of the engine against the simulated cloud, and from events in the engine's format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pulumi
import pulumi_aws as aws
import pytest

from cluster.costs import CostItem, CostKind
from cluster.load import load_cluster
from operations.plan import Action, Planner, StackPlan
from sandbox.simcloud.server import simulated_clouds
from sandbox.simcloud.world import World
from stacks.automation import ClusterStack
from stacks.errors import StackError
from stacks.events import ResourceStarted, deleted, on_resource_start
from tests.programs import program

ROOT = Path(__file__).parents[2]
SECRET = "correct-horse-battery-staple"


@dataclass
class Declared:
    """What the program declares."""

    zone: str = "us-east-1a"
    size: int = 100
    secret: str = SECRET
    address: bool = True
    protect: bool = False
    most: int = 9
    machines: list[str] = field(default_factory=lambda: ["i4i.xlarge", "i4i.xlarge"])


class Etcd(pulumi.ComponentResource):
    def __init__(self, inputs: Declared, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:aws:Etcd", "lemur-etcd", None, opts)
        own = pulumi.ResourceOptions(parent=self)
        vpc = aws.ec2.Vpc("lemur", cidr_block="10.40.0.0/16", opts=own)
        aws.ec2.Subnet("first", vpc_id=vpc.id, cidr_block="10.40.0.0/24", opts=own)
        aws.ebs.Volume(
            "data-1",
            availability_zone=inputs.zone,
            size=inputs.size,
            type="io2",
            iops=3000,
            opts=pulumi.ResourceOptions(parent=self, protect=inputs.protect),
        )
        stored = aws.secretsmanager.Secret("stored", name="stored", opts=own)
        value = pulumi.Output.secret(inputs.secret)
        aws.secretsmanager.SecretVersion("stored", secret_id=stored.id, secret_string=value, opts=own)
        if inputs.address:
            aws.ec2.Eip("way-out", domain="vpc", opts=own)
        self.register_outputs({})


class Run:
    """The stack of `Declared` in a separate account."""

    def __init__(self, folder: Path) -> None:
        cluster = load_cluster(ROOT / "tests" / "specs" / "valid-aws.yaml")
        self.inputs = Declared()
        self.stack = ClusterStack(cluster, self._declare, program("pulumi"), folder)

    def _declare(self) -> None:
        Etcd(self.inputs, pulumi.ResourceOptions(provider=aws.Provider("lemur-aws", region="us-east-1")))

    def plan(self) -> StackPlan:
        planner = Planner()
        self.stack.preview(on_resource_start(planner.hear))
        return planner.plan()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with simulated_clouds(World(), clouds=["aws"]) as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in {**environment, "PULUMI_CONFIG_PASSPHRASE": "tests"}.items():
            patch.setenv(name, value)
        yield Run(tmp_path_factory.mktemp("plan"))


@pytest.fixture(scope="module")
def plans(run: Run) -> dict[str, StackPlan]:
    """Plans of the first update, its destroy, a second one without changes, and one with changes of all kinds."""
    by_name = {"first": run.plan()}
    run.stack.up()
    planner = Planner()
    for resource in run.stack.deployment()["resources"]:
        planner.hear(deleted(resource))
    by_name["destroyed"] = planner.plan()
    by_name["same"] = run.plan()
    run.inputs = Declared(zone="us-east-1b", size=200, secret=f"{SECRET}-2", address=False)
    by_name["changed"] = run.plan()
    return by_name


@pytest.mark.engine
@pytest.mark.xdist_group("plan")
def test_a_first_plan_creates_everything_in_its_component(plans: dict[str, StackPlan]) -> None:
    plan = plans["first"]
    (component,) = plan.components
    assert (component.name, component.what) == ("lemur-etcd", "etcd")
    assert {change.action for change in plan.changes} == {Action.CREATE}
    assert [(c.what, c.name) for c in plan.changes][:3] == [
        ("VPC", "lemur"),
        ("disk", "data-1"),
        ("public address", "way-out"),
    ]
    assert (plan.unchanged, plan.before, plan.losses) == (0, (), ())
    disk = CostItem(CostKind.DISK, "io2 100 GiB, 3000 IOPS", gib=100, type="io2", iops=3000)
    assert plan.after == (disk, CostItem(CostKind.PUBLIC_ADDRESS), CostItem(CostKind.SECRET))


@pytest.mark.engine
@pytest.mark.xdist_group("plan")
def test_what_a_destroy_deletes_is_what_the_first_plan_created(plans: dict[str, StackPlan]) -> None:
    plan = plans["destroyed"]
    assert {change.action for change in plan.changes} == {Action.DELETE}
    assert {(c.what, c.name) for c in plan.changes} >= {(c.what, c.name) for c in plans["first"].changes}
    assert [change.name for change in plan.losses] == ["data-1"]
    assert (plan.before, plan.after) == (plans["first"].after, ())


@pytest.mark.engine
@pytest.mark.xdist_group("plan")
def test_a_plan_without_a_change_is_empty(plans: dict[str, StackPlan]) -> None:
    plan = plans["same"]
    assert (plan.components, plan.unchanged) == ((), 6)
    assert plan.before == plan.after == plans["first"].after


@pytest.mark.engine
@pytest.mark.xdist_group("plan")
def test_a_replacement_shows_the_property_that_forces_it_and_what_is_lost(plans: dict[str, StackPlan]) -> None:
    plan = plans["changed"]
    changes = {(change.what, change.name): change for change in plan.changes}
    disk = changes["disk", "data-1"]
    assert (disk.action, disk.because, disk.loses) == (Action.REPLACE, ("availabilityZone",), "a disk")
    assert changes["public address", "way-out"].action is Action.DELETE
    assert changes["secret version", "stored"].loses is None
    assert plan.losses == (disk,)
    assert [plan.count(action) for action in Action] == [2, 1, 0, 0]
    assert [change.action for change in plan.changes] == [Action.REPLACE, Action.REPLACE, Action.DELETE]


@pytest.mark.engine
@pytest.mark.xdist_group("plan")
def test_cost_items_of_the_stack_are_shown_before_and_after(plans: dict[str, StackPlan]) -> None:
    plan = plans["changed"]
    assert plan.before == plans["first"].after
    disk = CostItem(CostKind.DISK, "io2 200 GiB, 3000 IOPS", gib=200, type="io2", iops=3000)
    assert plan.after == (disk, CostItem(CostKind.SECRET))
    assert plan.disk_gib(plan.after) == (200, 200)


@pytest.mark.engine
@pytest.mark.xdist_group("plan")
def test_no_plan_shows_a_secret(plans: dict[str, StackPlan]) -> None:
    text = json.dumps([plan.to_json() for plan in plans.values()])
    assert SECRET not in text
    assert "secretString" in text, "the property itself is told"


@pytest.mark.engine
@pytest.mark.xdist_group("plan")
def test_if_the_engine_refuses_the_plan_goes_up_to_that_point(run: Run, plans: dict[str, StackPlan]) -> None:
    run.inputs = Declared(protect=True)
    run.stack.up()
    run.inputs = Declared(protect=True, zone="us-east-1b", address=False)
    planner = Planner()
    with pytest.raises(StackError, match="(?s)data-1.*protect"):
        run.stack.preview(on_resource_start(planner.hear))
    changes = {(change.action, change.name) for change in planner.plan().changes}
    assert changes == {(Action.REPLACE, "data-1"), (Action.DELETE, "way-out")}


CLUSTER = "urn:pulumi:a::menagerie::pulumi:pulumi:Stack::menagerie-a"
GROUP = "urn:pulumi:a::menagerie::menagerie:aws:Workers::a-workers"


def event(type_, name, after, before=None, operation="create", parent=CLUSTER, **more):
    return ResourceStarted(
        operation, f"urn:pulumi:a::menagerie::{type_}::{name}", type_, parent, False, before, after, **more
    )


def planned(*events, pools=None):
    planner = Planner(pools or {})
    for each in events:
        planner.hear(each)
    return planner.plan()


def taken(*events, pools=None):
    return {(item.kind, item.what): (item.least, item.most) for item in planned(*events, pools=pools).after}


def test_a_group_of_machines_counts_its_template_from_its_minimum_to_its_maximum():
    ebs = {"volumeType": "gp3", "volumeSize": 128, "iops": 4000}
    inputs = {"instanceType": "p5.48xlarge", "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": ebs}]}
    template = "aws:ec2/launchTemplate:LaunchTemplate"
    costs = taken(
        event(template, "a-gpu", inputs, parent=GROUP),
        event(template, "a-cpu", {"instanceType": "m7i.8xlarge"}, parent=GROUP),
        event("aws:autoscaling/group:Group", "a-gpu", {"minSize": 2, "maxSize": 64.0}, parent=GROUP),
        event("aws:autoscaling/group:Group", "a-other", {"minSize": 1, "maxSize": 1}, parent=GROUP),
    )
    assert costs == {
        (CostKind.MACHINE, "p5.48xlarge"): (2, 64),
        (CostKind.MACHINE, "of a type not known yet"): (1, 1),
        (CostKind.DISK, "gp3 128 GiB, 4000 IOPS"): (2, 64),
    }


def test_machines_and_disks_of_google_cloud():
    template = {"machineType": "a3-highgpu-8g", "disks": [{"diskType": "hyperdisk-balanced", "diskSizeGb": 50}]}
    boot = {"initializeParams": {"type": "pd-ssd", "size": 20}}
    costs = taken(
        event("gcp:compute/regionInstanceTemplate:RegionInstanceTemplate", "t", template, parent=GROUP),
        event(
            "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager", "g", {"targetSize": 3}, parent=GROUP
        ),
        event(
            "gcp:compute/instance:Instance",
            "etcd-main-1",
            {"machineType": "n2-standard-8", "bootDisk": boot, "scratchDisks": [{"interface": "NVME", "size": 375}]},
        ),
        event("gcp:compute/disk:Disk", "d", {"type": "hyperdisk-balanced", "size": 128, "provisionedIops": 6000}),
        event("gcp:compute/address:Address", "inner", {"addressType": "INTERNAL"}),
        event("gcp:compute/address:Address", "outer", {}),
        event("gcp:compute/routerNat:RouterNat", "nat", {}),
    )
    assert costs == {
        (CostKind.MACHINE, "a3-highgpu-8g"): (3, 3),
        (CostKind.MACHINE, "n2-standard-8"): (1, 1),
        (CostKind.DISK, "hyperdisk-balanced 50 GiB"): (3, 3),
        (CostKind.DISK, "pd-ssd 20 GiB"): (1, 1),
        (CostKind.DISK, "local-ssd 375 GiB"): (1, 1),
        (CostKind.DISK, "hyperdisk-balanced 128 GiB, 6000 IOPS"): (1, 1),
        (CostKind.PUBLIC_ADDRESS, ""): (1, 1),
        (CostKind.NAT, "host behind Cloud NAT"): (4, 4),
    }


def test_a_pool_of_google_cloud_grows_to_its_maximum_over_the_groups_of_its_zones():
    def group(name, size):
        return event("gcp:compute/instanceGroupManager:InstanceGroupManager", name, {"targetSize": size}, parent=GROUP)

    def template(name, machine, **more):
        inputs = {"machineType": machine, "labels": {"role": "worker", "pool": name}, "disks": [], **more}
        return event(
            "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate", f"a-pool-{name}", inputs, parent=GROUP
        )

    costs = taken(
        template("cpu", "c3-standard-8"),
        template("cpu-big", "c3-standard-88", scheduling={"provisioningModel": "SPOT"}),
        group("a-pool-cpu-us-central1-a", 1),
        group("a-pool-cpu-us-central1-b", 1),
        group("a-pool-cpu-big-us-central1-a", 3),
        event("gcp:compute/routerNat:RouterNat", "nat", {}),
        pools={"cpu": 10, "cpu-big": 3, "elsewhere": 99},
    )
    assert costs == {
        (CostKind.MACHINE, "c3-standard-8"): (2, 10),
        (CostKind.MACHINE, "c3-standard-88 as spot"): (3, 3),
        (CostKind.NAT, "host behind Cloud NAT"): (5, 13),
    }


def test_a_global_rule_of_google_cloud_is_an_endpoint_if_it_leads_to_googles_apis():
    rule = "gcp:compute/globalForwardingRule:GlobalForwardingRule"
    assert taken(event(rule, "apis", {"target": "all-apis"}), event(rule, "web", {"target": "proxy"})) == {
        (CostKind.ENDPOINT, ""): (1, 1),
        (CostKind.LOAD_BALANCER, ""): (1, 1),
    }


def test_a_nat_gateway_of_a_whole_region_costs_for_each_zone():
    one, regional = {"subnetId": "subnet-1"}, {"availabilityMode": "regional"}
    zones = ["use1-az1", "use1-az1", "use1-az2"]
    assert taken(
        event("aws:ec2/natGateway:NatGateway", "one", one),
        event("aws:ec2/natGateway:NatGateway", "all", regional),
        *(event("aws:ec2/subnet:Subnet", f"s{n}", {"availabilityZoneId": zone}) for n, zone in enumerate(zones)),
    ) == {(CostKind.NAT, ""): (1, 1), (CostKind.NAT, "zone of the regional gateway"): (2, 2)}


def test_machines_and_disks_of_azure():
    def storage(kind, gib, **more):
        return {"osDisk": {"diskSizeGB": gib, "managedDisk": {"storageAccountType": kind}, **more}}

    attached = {"createOption": "Attach", "lun": 0, "managedDisk": {"id": "/subscriptions/x"}}
    costs = taken(
        event(
            "azure-native:compute:VirtualMachineScaleSet",
            "api",
            {
                "sku": {"name": "Standard_D16ds_v5", "capacity": 5},
                "virtualMachineProfile": {"storageProfile": storage("", 64, diffDiskSettings={"option": "Local"})},
            },
        ),
        event(
            "azure-native:compute:VirtualMachineScaleSet",
            "pool",
            {
                "sku": {"name": "Standard_D8s_v5", "capacity": 2},
                "tags": {"min": "2", "max": "10"},
                "virtualMachineProfile": {"storageProfile": storage("Premium_LRS", 128), "priority": "Spot"},
            },
        ),
        event("azure-native:network:VirtualNetworkGateway", "vpn", {"sku": {"name": "VpnGw2AZ", "tier": "VpnGw2AZ"}}),
        event(
            "azure-native:compute:VirtualMachine",
            "etcd-main-1",
            {
                "hardwareProfile": {"vmSize": "Standard_L8s_v3"},
                "storageProfile": storage("Premium_LRS", 32) | {"dataDisks": [attached]},
            },
        ),
        event(
            "azure-native:compute:Disk",
            "data",
            {"sku": {"name": "PremiumV2_LRS"}, "diskSizeGB": 128, "diskIOPSReadWrite": 3000},
        ),
        event("azure-native:network:PublicIPAddress", "nat", {}),
    )
    assert costs == {
        (CostKind.MACHINE, "Standard_D16ds_v5"): (5, 5),
        (CostKind.MACHINE, "Standard_D8s_v5 as spot"): (2, 10),
        (CostKind.MACHINE, "Standard_L8s_v3"): (1, 1),
        (CostKind.DISK, "Premium_LRS 128 GiB"): (2, 10),
        (CostKind.DISK, "Premium_LRS 32 GiB"): (1, 1),
        (CostKind.DISK, "PremiumV2_LRS 128 GiB, 3000 IOPS"): (1, 1),
        (CostKind.PUBLIC_ADDRESS, ""): (1, 1),
        (CostKind.VPN_GATEWAY, "VpnGw2AZ"): (1, 1),
    }


@pytest.mark.parametrize(
    "kind", [{"ciphertext": "[secret]"}, "04da6b54-80e4-46f7-96ec-b56ff0331ba9", "[secret]", "two words", None]
)
def test_secret_or_unknown_values_are_never_shown_as_a_machine_type(kind):
    instance = event("aws:ec2/instance:Instance", "m", {"instanceType": kind})
    assert (CostKind.MACHINE, "of a type not known yet") in taken(instance)


def test_the_events_of_a_replacement_are_one_change():
    type_ = "aws:ec2/instance:Instance"
    old, new = {"instanceType": "i4i.large"}, {"instanceType": "i4i.xlarge"}
    plan = planned(
        event(type_, "m", old, old, "refresh"),
        event(type_, "m", new, old, "create-replacement", forcing=("instanceType",), changed=("instanceType", "tags")),
        event(type_, "m", new, old, "replace", forcing=("instanceType",)),
        event(type_, "m", None, old, "delete-replaced", parent=""),
    )
    (change,) = plan.changes
    assert (change.action, change.because) == (Action.REPLACE, ("instanceType",))
    assert change.loses == "an etcd host with its local disks"
    assert [item.what for item in (plan.before[0], plan.after[0])] == ["i4i.large", "i4i.xlarge"]


def test_the_stack_providers_and_components_are_not_changes_unless_a_provider_changes():
    stack = ResourceStarted("create", CLUSTER, "pulumi:pulumi:Stack", "", False, None, {})
    component = ResourceStarted("create", GROUP, "menagerie:aws:Workers", CLUSTER, False, None, {})
    assert planned(stack, event("pulumi:providers:aws", "a", {}), component).changes == ()
    (change,) = planned(event("pulumi:providers:aws", "a", {}, {}, "replace", forcing=("region",))).changes
    assert (change.action, change.because) == (Action.REPLACE, ("region",))


def test_resources_outside_a_component_are_of_the_whole_cluster():
    (component,) = planned(event("pulumi-python:dynamic/lab:Host", "api-1", {"memory_bytes": 2**29})).components
    assert (component.name, component.what) == ("", "whole cluster")
    assert [change.what for change in component.changes] == ["host"]
