"""Tokens of service accounts: how long those live that a former key has signed.

A kubelet renews the token of a volume once 80 % of its life are over, or it is a day old (kubernetes.io, "Configure Service
Accounts for Pods"). Tokens in Secrets have no end, and ones that somebody asked for have the end that was asked for: which
those are, the cluster does not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from kubernetes import client

from clients.access import API_TIMEOUT_S
from cluster.errors import FailedError
from operations.keys.pods import pods

_LONGEST = timedelta(hours=25)
"""A kubelet renews after a day at the latest, and looks now and then."""
_USUAL = timedelta(hours=1)
_SLACK = timedelta(minutes=10)


def longest_life(api: client.ApiClient) -> timedelta:
    """Until the last token of a pod's volume has been renewed."""
    asked = [timedelta(seconds=seconds) for pod in pods(api) for seconds in _seconds(pod)]
    return min(max([_USUAL, *asked]), _LONGEST) + _SLACK


def refuse_endless(cluster: str, api: client.ApiClient, before: float) -> None:
    """FailedError where Secrets with tokens are older than `before`, Unix time."""
    kept = client.CoreV1Api(api).list_secret_for_all_namespaces(
        field_selector="type=kubernetes.io/service-account-token", _request_timeout=API_TIMEOUT_S
    )
    names = sorted(
        f"{each.metadata.namespace}/{each.metadata.name}"
        for each in kept.items
        if each.metadata.creation_timestamp.timestamp() < before
    )
    if names:
        shown = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
        raise FailedError(
            f"the former key of service accounts signed tokens that lie in Secrets and never end: {shown}. Delete them, or "
            "make them anew: kubectl delete secret NAME, then apply it again (kubernetes.io/service-account-token). Then: "
            f"./menagerie keys rotate {cluster} service-account",
            code="endless-tokens",
        )


def _seconds(pod: client.V1Pod) -> Iterator[int]:
    for volume in pod.spec.volumes or ():
        for source in (volume.projected.sources or ()) if volume.projected else ():
            if source.service_account_token and source.service_account_token.expiration_seconds:
                yield source.service_account_token.expiration_seconds
