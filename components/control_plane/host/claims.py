"""Which addresses a node may have in its serving certificate.

A machine at a site may have the address that the spec gives it. Operators' commands write these into a ConfigMap, so
that adding a machine does not replace API servers. A worker in the region is in no spec. It gets the one address in its
Node, if that is in the workers' range and no other node's. It keeps that address as long as the Node exists, because a
kubelet writes its own Node's addresses: a node that got its address at its first start can't get another node's later.
"""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from .api import Api, ApiError
from .following import NotYet

CONFIGMAPS = "/api/v1/namespaces/menagerie-serving/configmaps"
HOSTS, WORKERS = "hosts", "workers"
KEY = "hosts.json"
NODES = "/api/v1/nodes"
Address = ipaddress.IPv4Address


class Refused(Exception):
    """A node must not have the addresses that it requests."""


@dataclass(frozen=True)
class Node:
    """uid: distinguishes it from other Nodes of its name. addresses: as its kubelet reports them."""

    uid: str
    addresses: frozenset[str]


def nodes(listed: list[dict[str, Any]]) -> dict[str, Node]:
    """Return name -> node of the API's list."""
    by_name = {}
    for each in listed:
        said = each.get("status", {}).get("addresses") or []
        inside = frozenset(str(one.get("address")) for one in said if one.get("type") == "InternalIP")
        by_name[each["metadata"]["name"]] = Node(each["metadata"]["uid"], inside)
    return by_name


def living(records: dict[str, str], known: dict[str, Node]) -> dict[str, str]:
    """Return the address records whose own Node (same UID) still exists: name -> "<uid> <address>"."""
    return {name: text for name, text in records.items() if name in known and text.split(" ")[0] == known[name].uid}


def claim(name: str, address: Address, known: dict[str, Node], records: dict[str, str]) -> str:
    """Return the record that gives a worker in the region its address. Refused, NotYet.

    records: those of `living`. They override what Nodes report: a worker with a record can neither take nor block what
    another one has or is about to get.
    """
    own = known.get(name)
    if own is None:
        raise NotYet(f"there is no Node {name} yet")
    if name in records:
        had = records[name].split(" ")[1]
        if had != str(address):
            raise Refused(f"it has had {had} since it joined, and asks for {address}")
        return records[name]
    if str(address) not in own.addresses:
        raise NotYet(f"Node {name} does not report {address} as its own")
    owners = [other for other, text in records.items() if text.split(" ")[1] == str(address)]
    owners += [
        other for other, node in known.items() if other not in {name, *records} and str(address) in node.addresses
    ]
    if owners:
        raise Refused(f"{address} is {', '.join(sorted(owners))}'s")
    return f"{own.uid} {address}"


class Claims:
    """The addresses of a cluster's nodes. ranges: of workers in the region; () if there are none."""

    def __init__(self, api: Api, ranges: tuple[ipaddress.IPv4Network, ...]) -> None:
        self._api, self._ranges = api, ranges

    def settle(self, name: str, addresses: tuple[Address, ...]) -> None:
        """Allow a node these addresses, and record them. Refused, NotYet, ApiError."""
        hosts = self._hosts()
        if name in hosts:
            foreign = [str(each) for each in addresses if str(each) != hosts[name]]
            if foreign:
                raise Refused(f"{name} has {hosts[name]} in the spec, and asks for {', '.join(foreign)}")
            return
        if not self._ranges:
            raise NotYet(f"the cluster does not know the host {name}; run ./menagerie configure")
        if len(addresses) > 1:
            raise Refused(f"a worker in the region has one address, and {name} asks for {len(addresses)}")
        for each in addresses:
            self._settle_worker(name, each, frozenset(hosts.values()))

    def _settle_worker(self, name: str, address: Address, taken: frozenset[str]) -> None:
        if str(address) in taken or not any(address in network for network in self._ranges):
            raise Refused(f"{name} is not in the spec, and {address} is not in a range of workers in the region")
        config_map = self._api.call("GET", f"{CONFIGMAPS}/{WORKERS}")
        before = config_map.get("data") or {}
        own = self._node(name)
        if name in living(before, own):
            claim(name, address, own, before)
            return
        # Many megabytes in a large cluster, but only once per worker.
        known = nodes(self._api.call("GET", NODES)["items"])
        records = living(before, known)
        # With the version that was read: another host's approver may have assigned the address since.
        self._write({**config_map, "data": {**records, name: claim(name, address, known, records)}})

    def _node(self, name: str) -> dict[str, Node]:
        try:
            return nodes([self._api.call("GET", f"{NODES}/{name}")])
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            raise NotYet(f"there is no Node {name} yet") from None

    def _write(self, made: dict[str, Any]) -> None:
        thing = {**made, "apiVersion": "v1", "kind": "ConfigMap"}
        try:
            self._api.call("PUT", f"{CONFIGMAPS}/{WORKERS}", thing)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            raise NotYet("another approver has just decided about an address") from None

    def _hosts(self) -> dict[str, str]:
        """Return machine -> address of the spec."""
        config_map = self._api.call("GET", f"{CONFIGMAPS}/{HOSTS}")
        hosts: dict[str, str] = json.loads((config_map.get("data") or {}).get(KEY, "{}"))
        return hosts
