"""Functions of the provider `azure-native`."""

from __future__ import annotations

from collections.abc import Mapping

from simcloud.identifiers import guid
from simcloud.rules import Function, Offers, Settings
from simcloud.values import Properties
from simcloud.world import World


def _client(_: Properties, settings: Settings, __: Offers, ___: World) -> Properties:
    return {
        "clientId": guid("client"),
        "objectId": guid("object"),
        "subscriptionId": settings.account,
        "tenantId": guid("tenant"),
    }


FUNCTIONS: Mapping[str, Function] = {"azure-native:authorization:getClientConfig": _client}
