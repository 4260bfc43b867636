"""The protocol between cluster-autoscaler and an expander: messages and the one method, built when the program starts.

Numbers and types of fields are from `expander.proto` of cluster-autoscaler 1.36 and `generated.proto` of Kubernetes 1.36 (core/v1,
meta/v1, resource). Only fields that an expander needs are listed; others are skipped when read. Generated code would include all of
k8s.io/api.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "grpcplugin.Expander"
METHOD = "BestOptions"
_SCALARS = {"string": 9, "bytes": 12, "int32": 5, "int64": 3}
"""FieldDescriptorProto.Type."""
_MESSAGE = 11

# Message -> field -> (number, kind). Kinds: a scalar, a message, `[...]` for repeated, `{...}` for a map from strings.
_EXPANDER = {
    "BestOptionsRequest": {"options": (1, "[Option]"), "nodeBytesMap": (3, "{bytes}")},
    "BestOptionsResponse": {"options": (1, "[Option]")},
    "Option": {
        "nodeGroupId": (1, "string"),
        "nodeCount": (2, "int32"),
        "debug": (3, "string"),
        "podBytes": (5, "[bytes]"),
    },
}
_KUBERNETES = {
    "Quantity": {"string": (1, "string")},
    "Time": {"seconds": (1, "int64")},
    "ObjectMeta": {
        "name": (1, "string"),
        "namespace": (3, "string"),
        "creationTimestamp": (8, "Time"),
        "labels": (11, "{string}"),
    },
    "Resources": {"requests": (2, "{Quantity}")},
    "Container": {"resources": (8, "Resources"), "restartPolicy": (24, "string")},
    "PodSpec": {
        "containers": (2, "[Container]"),
        "initContainers": (20, "[Container]"),
        "overhead": (32, "{Quantity}"),
        "resources": (40, "Resources"),
    },
    "Pod": {"metadata": (1, "ObjectMeta"), "spec": (2, "PodSpec")},
    "NodeStatus": {"allocatable": (2, "{Quantity}")},
    "Node": {"metadata": (1, "ObjectMeta"), "status": (3, "NodeStatus")},
}
_Table = Mapping[str, Mapping[str, tuple[int, str]]]


def _classes(package: str, syntax: str, table: _Table) -> dict[str, Any]:
    """Return message -> class."""
    file = descriptor_pb2.FileDescriptorProto(name=f"menagerie/{package}.proto", package=package, syntax=syntax)
    for message, fields in table.items():
        descriptor = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            _add(descriptor, f".{package}", name, number, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        message: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{message}"))
        for message in table
    }


def _add(descriptor: Any, package: str, name: str, number: int, kind: str) -> None:
    field = descriptor.field.add(name=name, number=number, label=3 if kind[0] in "[{" else 1)
    inner = kind.strip("[]{}")
    if kind[0] == "{":
        # A map is a repeated message with key and value ("Language Guide (proto 3)", maps).
        entry = name[0].upper() + name[1:] + "Entry"
        pair = descriptor.nested_type.add(name=entry)
        pair.options.map_entry = True
        _add(pair, package, "key", 1, "string")
        _add(pair, package, "value", 2, inner)
        field.type, field.type_name = _MESSAGE, f"{package}.{descriptor.name}.{entry}"
    elif inner in _SCALARS:
        field.type = _SCALARS[inner]
    else:
        field.type, field.type_name = _MESSAGE, f"{package}.{inner}"


_ours, _theirs = _classes("grpcplugin", "proto3", _EXPANDER), _classes("menagerie.kubernetes", "proto2", _KUBERNETES)
Request, Response, Option = _ours["BestOptionsRequest"], _ours["BestOptionsResponse"], _ours["Option"]
Pod, Node = _theirs["Pod"], _theirs["Node"]


def quantities(amounts: Mapping[str, Any]) -> dict[str, str]:
    """Return a map of quantities as in JSON: ``{"cpu": "500m"}``."""
    return {name: quantity.string for name, quantity in amounts.items()}


def spec_of(pod: Any) -> dict[str, Any]:
    """Return the parts of a pod's spec that determine its requests, as in JSON."""
    return {
        "containers": [_container(each) for each in pod.spec.containers],
        "initContainers": [_container(each) for each in pod.spec.initContainers],
        "overhead": quantities(pod.spec.overhead),
        "resources": {"requests": quantities(pod.spec.resources.requests)},
    }


def _container(container: Any) -> dict[str, Any]:
    return {
        "restartPolicy": container.restartPolicy,
        "resources": {"requests": quantities(container.resources.requests)},
    }
