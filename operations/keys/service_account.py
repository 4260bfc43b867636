"""Lifetimes of service-account tokens that a former key has signed.

A kubelet renews the token of a volume after 80 % of its lifetime, or after a day (kubernetes.io, "Configure Service
Accounts for Pods"). Tokens in Secrets never expire. Requested tokens have the requested lifetime; the cluster does not
know which ones exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from kubernetes import client

from clients.kube import Kube
from cluster.errors import FailedError
from operations.keys.pods import pods

_LONGEST = timedelta(hours=25)
"""A kubelet renews after a day at the latest, and checks only from time to time."""
_USUAL = timedelta(hours=1)
_SLACK = timedelta(minutes=10)


def longest_life(api: client.ApiClient) -> timedelta:
    """Return the time until the last token in a pod's volume has been renewed."""
    lifetimes = [timedelta(seconds=seconds) for pod in pods(api) for seconds in _seconds(pod)]
    return min(max([_USUAL, *lifetimes]), _LONGEST) + _SLACK


def refuse_endless(cluster: str, api: client.ApiClient, before: float) -> None:
    """Raise FailedError if there are Secrets with tokens that are older than `before`, Unix time."""
    token_secrets = Kube(api).list("Secret", fields="type=kubernetes.io/service-account-token")
    names = sorted(
        f"{metadata['namespace']}/{metadata['name']}"
        for metadata in (secret["metadata"] for secret in token_secrets)
        if datetime.fromisoformat(metadata["creationTimestamp"]).timestamp() < before
    )
    if names:
        shown = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
        raise FailedError(
            f"the former service-account key signed tokens in Secrets, which never expire: {shown}. Delete these Secrets, or "
            "recreate them: kubectl delete secret NAME, then apply it again (kubernetes.io/service-account-token). Then run: "
            f"./menagerie keys rotate {cluster} service-account",
            code="endless-tokens",
        )


def _seconds(pod: client.V1Pod) -> Iterator[int]:
    for volume in pod.spec.volumes or ():
        for source in (volume.projected.sources or ()) if volume.projected else ():
            if source.service_account_token and source.service_account_token.expiration_seconds:
                yield source.service_account_token.expiration_seconds
