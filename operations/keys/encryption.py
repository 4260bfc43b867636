"""Secrets as they lie in etcd, and their encryption under another key.

The API server writes ``k8s:enc:<provider>:v1:<key name>:`` before what it encrypts (k8s.io/apiserver, value/transformer), so
etcd itself says which key a Secret needs. A patch that changes nothing is written all the same where the stored form is
stale, and no Secret's content leaves the cluster for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from clients.etcd_client import EtcdClient
from cluster.errors import FailedError

PREFIX = "/registry/secrets/"
PLAIN = "no key"
AT_ONCE = 8
_HEAD = re.compile(rb"k8s:enc:[a-z]+:v[0-9]+:([^:]+):")
_NEVER_IN_AGREEMENT = 10


def _still_encrypts(cluster: str, found: Counter[str], why: str) -> FailedError:
    which = "; ".join(f"key {name} still encrypts {count} secrets" for name, count in sorted(found.items()))
    return FailedError(
        f"{which}; it can't be removed{': ' + why if why else ''}. Run: ./menagerie keys rotate {cluster} encryption",
        code="still-encrypts",
    )


def key_of(value: bytes) -> str:
    """Name of the key that a stored value is encrypted with, `PLAIN` where it is not."""
    found = _HEAD.match(value)
    return found[1].decode() if found else PLAIN


def stale(etcd: EtcdClient, key: str) -> Iterator[tuple[str, str, str]]:
    """Secrets that are not encrypted with `key`: (namespace, name, what they are encrypted with). Read with a quorum."""
    for stored in etcd.scan(PREFIX):
        used = key_of(stored.value)
        if used != key:
            namespace, _, name = stored.key.removeprefix(PREFIX).partition("/")
            yield namespace, name, used


def rewrite(
    etcd: EtcdClient, api: Callable[[], client.ApiClient], key: str, cluster: str, tell: Callable[[str], None]
) -> int:
    """Have every Secret encrypted with `key`, proven by etcd; how many were written for it.

    May be cut off anywhere: a later run begins with what is left. FailedError where some can't be written.
    """
    written = 0
    core = client.CoreV1Api(api())
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in range(_NEVER_IN_AGREEMENT):
            left = list(stale(etcd, key))
            if not left:
                return written
            refusals = []
            for done, refusal in enumerate(pool.map(lambda each: _touch(core, *each[:2]), left), start=1):
                refusals += [refusal] if refusal else []
                tell(f"{done} of {len(left)} secrets written again")
            written += len(left) - len(refusals)
            if refusals:
                raise _still_encrypts(cluster, Counter(used for _, _, used in stale(etcd, key)), refusals[0])
    raise _still_encrypts(
        cluster,
        Counter(used for _, _, used in stale(etcd, key)),
        "others go on writing with it: is an API server behind?",
    )


def _touch(core: client.CoreV1Api, namespace: str, name: str) -> str:
    """Why a Secret could not be written; nothing where it was, or is gone."""
    try:
        core.patch_namespaced_secret(name, namespace, {}, _request_timeout=API_TIMEOUT_S, _preload_content=False)
    except ApiException as error:
        if error.status != HTTPStatus.NOT_FOUND:
            return f"{namespace}/{name}: {error.status} {error.reason}"
    return ""
