"""The JSON Schema of cluster.yaml and of hosts files, for completion and checks in editors."""

from __future__ import annotations

import inspect
import json
from typing import Any, Literal

from pydantic import BaseModel

from cluster import (
    autoscaler,
    ceph,
    kernel,
    links,
    metering,
    monitoring,
    network,
    pools,
    provisioning,
    registries,
    repair,
    roce,
    scheduling,
    sites,
    spec,
    tenancy,
    versions,
    volumes,
    web,
)
from cluster.pools import HostsFile
from cluster.quantities import format_bytes, format_duration_ms
from cluster.spec import ClusterSpec

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ROOTS: dict[str, tuple[type[BaseModel], str]] = {
    "cluster": (ClusterSpec, "A cluster of Menagerie: inventories/<cluster>/cluster.yaml"),
    "hosts": (HostsFile, "The machines of a pool: the file that pools.<pool>.hosts names"),
}
_ETCD = {
    "machine": ["Standard_L8s_v3"],
    "disk": ["local-nvme"],
    "heartbeat_interval": ["100ms"],
    "election_timeout": ["1s"],
}
_EXAMPLES: dict[str, dict[str, list[Any]]] = {
    "ClusterSpec": {"name": ["jaguar"]},
    "Kubernetes": {"version": [versions.KUBERNETES]},
    "ControlPlane": {"region": ["eastus2"], "machine": ["Standard_D16ds_v5"]},
    "EtcdCluster": _ETCD,
    "EtcdEvents": _ETCD,
    "Pool": {
        "hosts": ["hosts.yaml"],
        "site": ["sjc1"],
        "price_hour": [21.5],
        "labels": [{"openai.org/location": "onprem-sjc1"}],
    },
    "Kernel": {"parameters": [["pci=realloc"]]},
    "Storage": {"controllers": ["cpu"], "block_disk": ["gp3"]},
    "Device": {"pci": ["0000:1a:00.0"], "interface": ["ens1f0"]},
    "Ceph": {"hosts": [["storage"]]},
    "Disks": {"by_id": ["nvme-SAMSUNG_MZQL23T8HCLS*"], "min_size": ["3TiB"], "max_size": ["4TiB"]},
    "Team": {"block": ["20TiB"], "file": ["50TiB"], "object": ["10TiB"]},
    "Networks": {"cluster": [["10.9.0.0/24"]]},
    "Artefacts": {"mirror": ["https://mirror.example.org"], "registry": ["registry.example.org:5000"]},
    "Mirror": {"address": ["harbor.sjc1.example.org:5000"], "of": [["docker.io", "registry.k8s.io"]]},
    "Autoscaler": {"prices": [{"gpu": 12.5}], "data": [{"laion": {"topology.kubernetes.io/zone": "us-east-1a"}}]},
    "Monitoring": {"keep": [["node_load1"]], "dead_mans_switch": ["https://switch.example.org/1"]},
    "Receiver": {"url": ["https://alerts.example.org/hook"]},
    "Condition": {"type": ["ReadonlyFilesystem"], "status": ["True"]},
    "Host": {"mac": ["b8:59:9f:aa:bb:cc"]},
}


def schema(of: Literal["cluster", "hosts"] = "cluster") -> dict[str, Any]:
    """Return the schema as a JSON object. Equal models give equal schemas, key by key."""
    model, title = _ROOTS[of]
    top = model.model_json_schema(mode="validation")
    definitions = top.pop("$defs", {})
    for name, definition in [*definitions.items(), (model.__name__, top)]:
        _describe(name, definition)
    return {"$schema": _DIALECT, **top, "title": title, "$defs": dict(sorted(definitions.items()))}


def text(of: Literal["cluster", "hosts"] = "cluster") -> str:
    """Return the schema as the text of its file."""
    return json.dumps(schema(of), indent=2, ensure_ascii=False) + "\n"


def _describe(name: str, definition: dict[str, Any]) -> None:
    """Complete a definition.

    Descriptions only from the model's own docstring (pydantic also takes inherited ones), examples, no titles that
    repeat the key, and no keys that the model refuses.
    """
    model = next(
        getattr(module, name)
        for module in (
            spec,
            network,
            autoscaler,
            pools,
            sites,
            links,
            metering,
            kernel,
            roce,
            ceph,
            provisioning,
            registries,
            repair,
            scheduling,
            tenancy,
            volumes,
            monitoring,
            web,
        )
        if hasattr(module, name)
    )
    about = vars(model).get("__doc__")
    definition.pop("description", None)
    if about:
        definition["description"] = inspect.cleandoc(about)
    for key, field in definition.get("properties", {}).items():
        field.pop("title", None)
        _tidy_default(field)
        if "patternProperties" in field:
            field["additionalProperties"] = False
        if examples := _EXAMPLES.get(name, {}).get(key):
            field["examples"] = examples


def _tidy_default(field: dict[str, Any]) -> None:
    """Write the default as an operator would; remove it if the default is to have no value."""
    default = _given(field.get("default"))
    if default == {}:
        default = None
    if isinstance(default, int) and field.get("type") == "string":
        default = format_bytes(default) if "iB" in field["pattern"] else format_duration_ms(default)
    field.pop("default", None)
    if default is not None:
        field["default"] = default


def _given(value: Any) -> Any:
    """Return the value without keys that have no value."""
    if isinstance(value, dict):
        return {key: _given(inner) for key, inner in value.items() if inner is not None}
    return [_given(inner) for inner in value] if isinstance(value, list) else value
