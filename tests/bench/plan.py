"""``python -m tests.bench.plan KIND COUNT FOLDER [--lean]``: plan COUNT resources of one kind with the Pulumi engine.

The environment says where the engine finds its simulated cloud. --lean: use `stacks.lean`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from pulumi import automation as auto

from stacks import lean
from tools import build

PLACES = {
    "aws:region": "eu-west-1",
    "azure-native:location": "westeurope",
    "gcp:project": "apes",
    "gcp:region": "europe-west4",
}
_SUBNET = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/apes"
    "/providers/Microsoft.Network/virtualNetworks/apes/subnets/etcd"
)


def _azure(number: int) -> None:
    from pulumi_azure_native import network

    configuration = network.NetworkInterfaceIPConfigurationArgs(
        name="one",
        private_ip_allocation_method="Static",
        private_ip_address=_address(number),
        subnet=network.SubnetArgs(id=_SUBNET),
    )
    network.NetworkInterface(
        f"ape-{number}",
        resource_group_name="apes",
        location=PLACES["azure-native:location"],
        enable_accelerated_networking=True,
        ip_configurations=[configuration],
        tags={"role": "etcd"},
    )


def _aws(number: int) -> None:
    from pulumi_aws import ec2

    ec2.NetworkInterface(
        f"ape-{number}",
        subnet_id="subnet-0123456789abcdef0",
        private_ips=[_address(number)],
        security_groups=["sg-0123456789abcdef0"],
        tags={"role": "etcd"},
    )


def _gcp(number: int) -> None:
    from pulumi_gcp import compute

    compute.Address(
        f"ape-{number}",
        address_type="INTERNAL",
        address=_address(number),
        subnetwork="projects/apes/regions/europe-west4/subnetworks/etcd",
        region=PLACES["gcp:region"],
        labels={"role": "etcd"},
    )


KINDS: dict[str, Callable[[int], None]] = {"azure": _azure, "aws": _aws, "gcp": _gcp}
"""Cloud -> function that declares one address of an etcd member."""


def _address(number: int) -> str:
    return f"10.44.{number // 200}.{number % 200 + 10}"


def plan(cloud: str, count: int, folder: Path, *, leanly: bool) -> dict[str, int]:
    """Return operation -> number of resources in an update of an empty stack."""

    def declare() -> None:
        for number in range(count):
            KINDS[cloud](number)

    stack_ = stack(declare, folder, leanly=leanly)
    with lean.few_collections() if leanly else nullcontext():
        return {str(getattr(op, "value", op)): number for op, number in stack_.preview().change_summary.items()}


def stack(declare: Callable[[], None], folder: Path, *, leanly: bool) -> auto.Stack:
    """Return a stack with its state in `folder`."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    if leanly:
        lean.without_log_files(home)

    def declare_leanly() -> None:
        lean.without_former_types()
        declare()

    program = lean.program(declare_leanly) if leanly else declare
    return auto.create_or_select_stack("bench", project_name="bench", program=program, opts=_options(folder, home))


def _options(folder: Path, home: Path) -> auto.LocalWorkspaceOptions:
    for name in ("state", "work", "cli/bin"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    command = folder / "cli" / "bin" / "pulumi"
    if not command.is_symlink():
        command.symlink_to(build.ensure(["pulumi"])["pulumi"])
    return auto.LocalWorkspaceOptions(
        work_dir=str(folder / "work"),
        pulumi_command=auto.PulumiCommand(root=str(folder / "cli"), skip_version_check=True),
        project_settings=auto.ProjectSettings(
            name="bench", runtime="python", backend=auto.ProjectBackend(url=f"file://{folder / 'state'}")
        ),
        stack_settings={"bench": auto.StackSettings(config=dict(PLACES))},
        env_vars={
            "PULUMI_CONFIG_PASSPHRASE": "bench",
            "PULUMI_DEBUG_PROVIDERS": os.environ["PULUMI_DEBUG_PROVIDERS"],
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_HOME": str(home),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        },
    )


def main() -> None:
    """Plan, and fail if the plan does not have the requested number of resources."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("count", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lean", action="store_true")
    options = parser.parse_args()
    planned = plan(options.kind, options.count, options.folder, leanly=options.lean)
    if planned != {"create": options.count + 1}:  # the stack itself counts too
        raise SystemExit(f"{options.count} resources were declared, but the plan is {planned}")


if __name__ == "__main__":
    main()
