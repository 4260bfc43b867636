"""Functions of the provider `azure-native`."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.simcloud.azure.common import CLIENT, TENANT
from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.rules import Function, Offers, Settings
from sandbox.simcloud.values import Properties
from sandbox.simcloud.world import World


def _client(_: Properties, settings: Settings, __: Offers, ___: World) -> Properties:
    return {
        "clientId": guid("client"),
        "objectId": CLIENT,
        "subscriptionId": settings.account,
        "tenantId": TENANT,
    }


FUNCTIONS: Mapping[str, Function] = {"azure-native:authorization:getClientConfig": _client}
