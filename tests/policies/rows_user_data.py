"""User data with and without secrets, short and long."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from components.userdata import Payload
from stacks.policies.model import SECRET
from tests.policies.support import Case, resource


def packed(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def zipped(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode())).decode()


PLAIN = f"#cloud-config\nwrite_files:\n- content: {zipped('nothing to hide here, ' * 9)}\n"
PEM = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIFx\n-----END EC PRIVATE KEY-----\n"
SECRETS = (
    PEM,
    f"#cloud-config\nwrite_files:\n- content: {zipped(PEM * 3)}\n",
    f"client-key-data: {packed(PEM)}\n",
    f"HELD = {json.dumps({'payload-1': Payload(PEM * 3).packed()})}\n",
    f"base64 -d <<EOF\n{packed('first ' * 20)[:76]}\n{packed(PEM)}\nEOF\n",
    f"{PLAIN}- token: abcdef.0123456789abcdef\n",
    f"{PLAIN}AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE\n",
    "chpasswd:\n  users:\n  - password: hunter2\n",
    SECRET,
)


def _long(most: int) -> str:
    return "x" * (most + 1)


def _user_data(type_: str, path: str, *, in_base64: bool) -> tuple[Case, Case]:
    """Return the cases of a type with user data at a path."""
    way = path.split(".")
    most = {"aws": 16384, "azure-native": 65535, "gcp": 262144}[type_.partition(":")[0]]

    def at(text: str) -> Any:
        value: Any = packed(text) if in_base64 and text != SECRET else text
        for name in reversed(way):
            value = {name: value}
        return value

    kept = (resource(type_, at(PLAIN)),)
    full = (resource(type_, at("x" * most)),)
    return (
        Case("user-data-without-secrets", kept, tuple(at(text) for text in SECRETS)),
        Case("user-data-fits", full, (at(_long(most)),)),
    )


USER_DATA = (
    *_user_data("aws:ec2/instance:Instance", "userData", in_base64=False),
    *_user_data("aws:ec2/instance:Instance", "userDataBase64", in_base64=True),
    *_user_data("aws:ec2/launchTemplate:LaunchTemplate", "userData", in_base64=True),
    *_user_data("azure-native:compute:VirtualMachine", "osProfile.customData", in_base64=True),
    *_user_data(
        "azure-native:compute:VirtualMachineScaleSet", "virtualMachineProfile.osProfile.customData", in_base64=True
    ),
    *_user_data("gcp:compute/instance:Instance", "metadata.startup-script", in_base64=False),
    *_user_data("gcp:compute/instance:Instance", "metadataStartupScript", in_base64=False),
    *_user_data("gcp:compute/regionInstanceTemplate:RegionInstanceTemplate", "metadata.user-data", in_base64=False),
)
