"""Who asks, what that identity may do, and what the subscription must have: registrations, a network watcher, free names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from clients.clouds import CallError
from clients.clouds.azure_reader import AzureReader
from cluster.spec import Cluster
from operations.doctor.model import Answer, Question, ok, unknown, wrong
from stacks.azure.permissions import ACTIONS, ALWAYS, FEATURES, RECORDS, resource_providers
from stacks.azure.tags import workers_group_name

_SUBSCRIPTIONS, _PROVIDERS_API, _FEATURES_API, _PERMISSIONS, _WATCHERS = (
    "2022-12-01",
    "2021-04-01",
    "2021-07-01",
    "2022-04-01",
    "2024-05-01",
)
"""Versions of the APIs."""
_SHOWN = 6
_VPN = ("LocalNetworkGateway", "VirtualNetworkGateway", "VirtualNetworkGatewayConnection")


def account_questions(cluster: Cluster, reader: AzureReader) -> list[Question]:
    def question(group: str, name: str, ask: Any, right: str) -> Question:
        return Question(group, name, ask, (right,), (right,))

    resources = "Microsoft.Resources/subscriptions"
    return [
        question("account", "identity", lambda: _who(reader), f"{resources}/read"),
        question("account", "rights", lambda: _rights(cluster, reader), "Microsoft.Authorization/permissions/read"),
        question(
            "registrations",
            "resource providers",
            lambda: (_provider(reader, name) for name in resource_providers()),
            f"{resources}/providers/read",
        ),
        question(
            "registrations",
            "features",
            lambda: (_feature(reader, name) for name in FEATURES),
            "Microsoft.Features/providers/features/read",
        ),
        question(
            "registrations",
            "network watcher",
            lambda: _watcher(cluster, reader),
            "Microsoft.Network/networkWatchers/read",
        ),
        question("names", "resource groups", lambda: _groups(cluster, reader), f"{resources}/resourceGroups/read"),
    ]


def _who(reader: AzureReader) -> Iterator[Answer]:
    subscription, claims = reader.get("", _SUBSCRIPTIONS), reader.claims()
    names = [str(claims[key]) for key in ("upn", "unique_name", "appid", "oid") if claims.get(key)]
    who = names[0] if names else "an identity that the token does not name"
    text = (
        f"{who} in {subscription.get('displayName', '')} ({reader.subscription}), which is {subscription.get('state')}"
    )
    if subscription.get("state") == "Enabled":
        yield ok(text)
    else:
        yield wrong(text, "az account list --output table")


def _rights(cluster: Cluster, reader: AzureReader) -> Iterator[Answer]:
    """Compare the permissions of all the caller's roles with the operator's role. Conditions of assignments are not listed."""
    held = reader.every("/providers/Microsoft.Authorization/permissions", _PERMISSIONS)
    needed = sorted({*ALWAYS, *(action for type_ in _types(cluster) for action in ACTIONS[type_])})
    lacking = [action for action in needed if not any(_grants(each, action) for each in held)]
    if lacking:
        yield _lacking(cluster, reader, needed, lacking)
    else:
        yield ok(f"all {len(needed)} actions on the subscription; conditions and deny assignments are not listed there")
    if not all(any(_grants(each, action, "dataActions") for each in held) for action in RECORDS):
        yield wrong(
            "blobs of containers `artefacts` can't be read and written",
            f'az role assignment create --assignee {_who_am_i(reader)} --role "Storage Blob Data Contributor" --scope '
            f"/subscriptions/{reader.subscription} --condition-version 2.0 "
            '--condition "$(.venv/bin/python -m stacks.azure.permissions records)"',
            about="records",
        )
    else:
        yield ok("blobs can be read and written; conditions are not listed there", about="records")


def _who_am_i(reader: AzureReader) -> str:
    return str(reader.claims().get("oid") or '"$(az ad signed-in-user show --query id --output tsv)"')


def _lacking(cluster: Cluster, reader: AzureReader, needed: Sequence[str], lacking: Sequence[str]) -> Answer:
    shown = ", ".join(lacking[:_SHOWN]) + (f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else "")
    permissions = ".venv/bin/python -m stacks.azure.permissions"
    condition = f'"$({permissions} {reader.subscription} {cluster.name})"'
    return wrong(
        f"{len(lacking)} of {len(needed)} actions are missing: {shown}",
        f'az role definition create --role-definition "$({permissions} role {reader.subscription})"',
        f'az role assignment create --assignee {_who_am_i(reader)} --role "Menagerie operator" --scope '
        f"/subscriptions/{reader.subscription} --condition-version 2.0 --condition {condition}",
    )


def _types(cluster: Cluster) -> Iterable[str]:
    has_vpn = any(site.vpn for site in cluster.spec.sites.values())
    return [type_ for type_ in ACTIONS if has_vpn or type_.rpartition(":")[2] not in _VPN]


def _grants(permission: Mapping[str, Any], action: str, kind: str = "actions") -> bool:
    """Return whether one role allows an action: Azure compares without case, and `*` stands for anything."""

    def matches(patterns: object) -> bool:
        listed = patterns if isinstance(patterns, list) else []
        return any(fnmatchcase(action.lower(), str(pattern).lower()) for pattern in listed)

    return matches(permission.get(kind)) and not matches(permission.get(f"not{kind[0].upper()}{kind[1:]}"))


def _provider(reader: AzureReader, name: str) -> Answer:
    state = reader.get(f"/providers/{name}", _PROVIDERS_API).get("registrationState")
    command = f"az provider register --namespace {name} --wait --subscription {reader.subscription}"
    return _registered(name, state, command)


def _feature(reader: AzureReader, name: str) -> Answer:
    path = f"/providers/Microsoft.Features/providers/Microsoft.Compute/features/{name}"
    state = reader.get(path, _FEATURES_API).get("properties", {}).get("state")
    command = f"az feature register --namespace Microsoft.Compute --name {name} --subscription {reader.subscription}"
    return _registered(name, state, command)


def _registered(name: str, state: object, command: str) -> Answer:
    if state == "Registered":
        return ok("registered", about=name)
    if state in ("Registering", "Pending"):
        return unknown(f"{state}: wait, and ask again", about=name)
    return wrong(str(state or "not registered"), command, about=name)


def _watcher(cluster: Cluster, reader: AzureReader) -> Iterator[Answer]:
    """The stack writes its flow logs into the watcher that Azure makes in each region."""
    region = cluster.spec.control_plane.region
    path = f"/resourceGroups/NetworkWatcherRG/providers/Microsoft.Network/networkWatchers/NetworkWatcher_{region}"
    try:
        reader.get(path, _WATCHERS)
    except CallError as error:
        if not error.missing:
            raise
        command = f"az network watcher configure --locations {region} --enabled true -g NetworkWatcherRG"
        yield wrong(f"NetworkWatcherRG has no NetworkWatcher_{region}", command)
        return
    yield ok(f"NetworkWatcher_{region} exists")


def _groups(cluster: Cluster, reader: AzureReader) -> Iterator[Answer]:
    for name in (cluster.name, workers_group_name(cluster)):
        try:
            group = reader.get(f"/resourcegroups/{name}", _PROVIDERS_API)
        except CallError as error:
            if not error.missing:
                raise
            yield ok("the name is free", about=name)
            continue
        own = (group.get("tags") or {}).get("cluster") == cluster.name
        text = "exists with this cluster's tags: it is built, or an earlier run left it" if own else "exists already"
        yield wrong(text, f"az resource list --resource-group {name} --output table", about=name)
