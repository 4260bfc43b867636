"""The lab's parts as Pulumi resources: a thin layer over `sandbox/lab/`, whose operations are idempotent.

A dynamic provider runs in a process of the engine. Its class is pickled by reference, so this module must be importable
without the rest. `read` reports lost parts as gone: a refresh drops them from the state, and the next `up` creates them
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from sandbox.lab import balancer, buckets, datacentre, hosts, images, plan, store, volumes
from sandbox.lab.balancer import BalancerSpec
from sandbox.lab.hosts import HostSpec
from sandbox.lab.plan import LabSpec

Props = dict[str, Any]
_GONE = ReadResult("", {})


def _changed(olds: Props, news: Props) -> list[str]:
    """Return the inputs that differ; the engine's own entries start with two underscores."""
    return [key for key, value in news.items() if not key.startswith("__") and olds.get(key) != value]


class _DataCentreProvider(ResourceProvider):
    def create(self, props: Props) -> CreateResult:
        datacentre.ensure(_lab_spec(props), _publish)
        return CreateResult("datacentre", _plain(props))

    def read(self, id_: str, props: Props) -> ReadResult:
        return ReadResult(id_, props) if datacentre.is_up() else _GONE

    def diff(self, _id: str, _olds: Props, _news: Props) -> DiffResult:
        changed = _changed(_olds, _news)
        moved = [key for key in changed if key in ("cluster", "nodes", "endpoint", "workers")]
        return DiffResult(changes=bool(changed), replaces=moved, delete_before_replace=True)

    def update(self, _id: str, _olds: Props, _news: Props) -> UpdateResult:
        datacentre.ensure(_lab_spec(_news), _publish)
        # A mirror of another release brings images that the running registry does not have.
        _publish(plan.REGISTRY)
        return UpdateResult(_plain(_news))

    def delete(self, _id: str, _props: Props) -> None:
        datacentre.delete()


class DataCentre(Resource, module="lab", name="DataCentre"):
    """Router, networks, image registry, artefact mirror."""

    def __init__(self, name: str, spec: LabSpec, opts: pulumi.ResourceOptions) -> None:
        props = asdict(spec) | {name: list(getattr(spec, name)) for name in plan.LISTS}
        super().__init__(_DataCentreProvider(), name, props, opts)


class _VolumeProvider(ResourceProvider):
    def create(self, props: Props) -> CreateResult:
        volumes.ensure(props["volume"])
        return CreateResult(props["volume"], _plain(props))

    def read(self, id_: str, props: Props) -> ReadResult:
        return ReadResult(id_, props) if volumes.read(id_) else _GONE

    def diff(self, _id: str, _olds: Props, _news: Props) -> DiffResult:
        changed = _changed(_olds, _news)
        return DiffResult(changes=bool(changed), replaces=changed, delete_before_replace=True)

    def delete(self, _id: str, _props: Props) -> None:
        volumes.delete(_id)


class Volume(Resource, module="lab", name="Volume"):
    """A disk that outlives the host it is plugged into."""

    volume: pulumi.Output[str]

    def __init__(self, name: str, opts: pulumi.ResourceOptions) -> None:
        super().__init__(_VolumeProvider(), name, {"volume": name}, opts)


class _HostProvider(ResourceProvider):
    def create(self, props: Props) -> CreateResult:
        hosts.create(_host_spec(props), datacentre.spec())
        return CreateResult(props["host"], _plain(props))

    def read(self, id_: str, props: Props) -> ReadResult:
        return ReadResult(id_, props) if hosts.read(id_) else _GONE

    def diff(self, _id: str, _olds: Props, _news: Props) -> DiffResult:
        changed = _changed(_olds, _news)
        return DiffResult(changes=bool(changed), replaces=changed, delete_before_replace=True)

    def delete(self, _id: str, _props: Props) -> None:
        hosts.delete(_id)


class Host(Resource, module="lab", name="Host"):
    """A machine. Every change, also of its user data, replaces it with one of the same name and address.

    image: the root file system that it starts from.
    """

    def __init__(self, spec: HostSpec, image: str, opts: pulumi.ResourceOptions, **secret: pulumi.Input[Any]) -> None:
        fields = asdict(spec)
        props = {**fields, "host": fields.pop("name"), "image": image, **secret}
        props["authorized_keys"] = secret.get("authorized_keys", list(spec.authorized_keys))
        del props["name"]
        super().__init__(_HostProvider(), spec.name, props, opts)


class _StoreProvider(ResourceProvider):
    def create(self, props: Props) -> CreateResult:
        store.put(props["policy"], datacentre.spec())
        return CreateResult("secrets", _plain(props))

    def read(self, id_: str, props: Props) -> ReadResult:
        spec = datacentre.spec_or_none()
        held = spec is not None and store.read(spec) == store.fingerprint(props["policy"], spec)
        return ReadResult(id_, props) if held else _GONE

    def diff(self, _id: str, _olds: Props, _news: Props) -> DiffResult:
        return DiffResult(changes=bool(_changed(_olds, _news)))

    def update(self, _id: str, _olds: Props, _news: Props) -> UpdateResult:
        store.put(_news["policy"], datacentre.spec())
        return UpdateResult(_plain(_news))

    def delete(self, _id: str, _props: Props) -> None:
        store.delete()


class SecretStore(Resource, module="lab", name="SecretStore"):
    """Who may read and write what: see `sandbox.lab.store.Policy`."""

    def __init__(self, name: str, policy: Mapping[str, Mapping[str, Any]], opts: pulumi.ResourceOptions) -> None:
        opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(additional_secret_outputs=["policy"]))
        super().__init__(_StoreProvider(), name, {"policy": pulumi.Output.secret(policy)}, opts)


class _BucketsProvider(ResourceProvider):
    def create(self, props: Props) -> CreateResult:
        buckets.put(props["key"], datacentre.spec())
        return CreateResult("buckets", _plain(props))

    def read(self, id_: str, props: Props) -> ReadResult:
        return ReadResult(id_, props) if buckets.read() == buckets.fingerprint(props["key"]) else _GONE

    def diff(self, _id: str, _olds: Props, _news: Props) -> DiffResult:
        return DiffResult(changes=bool(_changed(_olds, _news)))

    def update(self, _id: str, _olds: Props, _news: Props) -> UpdateResult:
        buckets.put(_news["key"], datacentre.spec())
        return UpdateResult(_plain(_news))

    def delete(self, _id: str, _props: Props) -> None:
        buckets.delete()


class Buckets(Resource, module="lab", name="Buckets"):
    """The server of buckets. key: access_key_id and secret_access_key."""

    def __init__(self, name: str, key: Mapping[str, pulumi.Input[str]], opts: pulumi.ResourceOptions) -> None:
        opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(additional_secret_outputs=["key"]))
        super().__init__(_BucketsProvider(), name, {"key": pulumi.Output.secret(key)}, opts)


class _BalancerProvider(ResourceProvider):
    def create(self, props: Props) -> CreateResult:
        balancer.ensure(_balancer_spec(props), datacentre.spec())
        return CreateResult("balancer", _plain(props))

    def read(self, id_: str, props: Props) -> ReadResult:
        return ReadResult(id_, props) if balancer.read() == balancer.fingerprint(_balancer_spec(props)) else _GONE

    def diff(self, _id: str, _olds: Props, _news: Props) -> DiffResult:
        return DiffResult(changes=bool(_changed(_olds, _news)))

    def update(self, _id: str, _olds: Props, _news: Props) -> UpdateResult:
        balancer.ensure(_balancer_spec(_news), datacentre.spec())
        return UpdateResult(_plain(_news))

    def delete(self, _id: str, _props: Props) -> None:
        balancer.delete()


class LoadBalancer(Resource, module="lab", name="LoadBalancer"):
    """haproxy in front of the API servers. ca_pem replaces the spec's."""

    def __init__(self, name: str, spec: BalancerSpec, ca_pem: pulumi.Output[str], opts: pulumi.ResourceOptions) -> None:
        super().__init__(_BalancerProvider(), name, asdict(spec) | {"ca_pem": ca_pem}, opts)


def _publish(registry: str) -> None:
    images.publish(images.build_images(), registry)


def _plain(props: Props) -> Props:
    return {key: value for key, value in props.items() if not key.startswith("__")}


def _lab_spec(props: Props) -> LabSpec:
    """Return the spec of properties, in which the engine turned numbers into floats."""
    fields = _plain(props)
    lists = {name: tuple(fields[name]) for name in plan.LISTS}
    lists["endpoint_ports"] = tuple(map(int, lists["endpoint_ports"]))
    return LabSpec(**fields | lists | {"rack_mtu": int(fields["rack_mtu"])})


def _host_spec(props: Props) -> HostSpec:
    fields = _plain(props)
    del fields["image"]
    fields["name"] = fields.pop("host")
    fields["authorized_keys"] = tuple(fields["authorized_keys"])
    disks = {name: int(size) for name, size in fields["disks"].items()}
    return HostSpec(**fields | {"memory_bytes": int(fields["memory_bytes"]), "disks": disks})


def _balancer_spec(props: Props) -> BalancerSpec:
    ports = {name: int(props[name]) for name in ("api_port", "konnectivity_port")}
    return BalancerSpec(**_plain(props) | ports)
