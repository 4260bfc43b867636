"""Keys and certificates as Pulumi resources, so that they are stored encrypted in the stack's state.

A dynamic provider runs in a process of the engine; its class is pickled by reference, so this module must stay
importable without the rest and imports only `stacks.certificates`.
"""

from __future__ import annotations

import datetime
import secrets
import uuid
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, Resource, ResourceProvider, UpdateResult

from stacks import certificates


class _AuthorityProvider(ResourceProvider):
    def create(self, props: dict[str, Any]) -> CreateResult:
        signed = certificates.new_authority(props["common_name"])
        outs = {
            "common_name": props["common_name"],
            "certificate": signed.certificate,
            "private_key": signed.private_key,
        }
        return CreateResult(id_=str(uuid.uuid4()), outs=outs)

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        changed = _olds["common_name"] != _news["common_name"]
        return DiffResult(changes=changed, replaces=["common_name"] if changed else [])


class Authority(Resource, module="pki", name="Authority"):
    """A certificate authority; `private_key` is a secret."""

    certificate: pulumi.Output[str]
    private_key: pulumi.Output[str]

    def __init__(self, name: str, common_name: str, opts: pulumi.ResourceOptions) -> None:
        opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(additional_secret_outputs=["private_key"]))
        super().__init__(
            _AuthorityProvider(),
            name,
            {"common_name": common_name, "certificate": None, "private_key": None},
            opts,
        )


_REQUEST = ("common_name", "organizations", "dns_names", "addresses", "usages", "days", "ca_certificate")


class _CertificateProvider(ResourceProvider):
    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(id_=str(uuid.uuid4()), outs=_issue(props))

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        changed = any(_olds.get(key) != _news.get(key) for key in _REQUEST)
        due = certificates.is_due(_olds["certificate"], datetime.datetime.now(datetime.UTC))
        return DiffResult(changes=changed or due)

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(outs=_issue(_news))


def _issue(props: dict[str, Any]) -> dict[str, Any]:
    authority = certificates.Signed(props["ca_certificate"], props["ca_private_key"])
    request = certificates.Request(
        common_name=props["common_name"],
        organizations=tuple(props["organizations"]),
        dns_names=tuple(props["dns_names"]),
        addresses=tuple(props["addresses"]),
        usages=tuple(props["usages"]),
        days=int(props["days"]),
    )
    signed = certificates.issue(authority, request)
    outs = {key: props[key] for key in _REQUEST}
    return outs | {"certificate": signed.certificate, "private_key": signed.private_key}


class Certificate(Resource, module="pki", name="Certificate"):
    """A certificate signed by an `Authority`, reissued after two thirds of its lifetime."""

    certificate: pulumi.Output[str]
    private_key: pulumi.Output[str]

    def __init__(
        self, name: str, authority: Authority, request: certificates.Request, opts: pulumi.ResourceOptions
    ) -> None:
        opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(additional_secret_outputs=["private_key"]))
        props = {
            "ca_certificate": authority.certificate,
            "ca_private_key": authority.private_key,
            "common_name": request.common_name,
            "organizations": list(request.organizations),
            "dns_names": list(request.dns_names),
            "addresses": list(request.addresses),
            "usages": list(request.usages),
            "days": request.days,
            "certificate": None,
            "private_key": None,
        }
        super().__init__(_CertificateProvider(), name, props, opts)


class _SecretProvider(ResourceProvider):
    def create(self, props: dict[str, Any]) -> CreateResult:
        wants_key = props["kind"] == "ecdsa-key"
        value = certificates.new_key() if wants_key else secrets.token_hex(int(props["bytes"]))
        return CreateResult(
            id_=str(uuid.uuid4()), outs={"kind": props["kind"], "bytes": props["bytes"], "value": value}
        )

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        replaces = [key for key in ("kind", "bytes") if _olds[key] != _news[key]]
        return DiffResult(changes=bool(replaces), replaces=replaces)


class Secret(Resource, module="pki", name="Secret"):
    """A random value made once: `kind` is "ecdsa-key" (PEM) or "hex" (`length` bytes)."""

    value: pulumi.Output[str]

    def __init__(self, name: str, kind: str, opts: pulumi.ResourceOptions, length: int = 32) -> None:
        opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(additional_secret_outputs=["value"]))
        super().__init__(_SecretProvider(), name, {"kind": kind, "bytes": length, "value": None}, opts)
