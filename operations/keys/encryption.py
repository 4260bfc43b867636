"""Encrypted Secrets in etcd, and their re-encryption with another key.

The API server prefixes encrypted values with ``k8s:enc:<provider>:v1:<key name>:`` (k8s.io/apiserver, value/transformer), so
the stored value shows which key a Secret needs. If the stored form is stale, an empty patch rewrites it; no content of a
Secret leaves the cluster for that.
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


def _still_encrypts(cluster: str, counts: Counter[str], why: str) -> FailedError:
    which = "; ".join(f"key {name} still encrypts {count} secrets" for name, count in sorted(counts.items()))
    return FailedError(
        f"{which}, so it can't be removed{': ' + why if why else ''}. Run: ./menagerie keys rotate {cluster} encryption",
        code="still-encrypts",
    )


def key_of(value: bytes) -> str:
    """Return the name of the key that encrypts a stored value, `PLAIN` if it is not encrypted."""
    match = _HEAD.match(value)
    return match[1].decode() if match else PLAIN


def stale(etcd: EtcdClient, key: str) -> Iterator[tuple[str, str, str]]:
    """Yield (namespace, name, key) of Secrets that are not encrypted with `key`. Reads with a quorum."""
    for stored in etcd.scan(PREFIX):
        used = key_of(stored.value)
        if used != key:
            namespace, _, name = stored.key.removeprefix(PREFIX).partition("/")
            yield namespace, name, used


def rewrite(
    etcd: EtcdClient, api: Callable[[], client.ApiClient], key: str, cluster: str, tell: Callable[[str], None]
) -> int:
    """Encrypt every Secret with `key`, and verify it in etcd. Return how many were rewritten.

    Can be interrupted at any point: a later run continues with the rest. Raises FailedError if some can't be rewritten.
    """
    written = 0
    core = client.CoreV1Api(api())
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in range(_NEVER_IN_AGREEMENT):
            left = list(stale(etcd, key))
            if not left:
                return written
            refusals = []
            for done, refusal in enumerate(pool.map(lambda secret: _touch(core, *secret[:2]), left), start=1):
                refusals += [refusal] if refusal else []
                tell(f"{done} of {len(left)} secrets re-encrypted")
            written += len(left) - len(refusals)
            if refusals:
                raise _still_encrypts(cluster, Counter(used for _, _, used in stale(etcd, key)), refusals[0])
    raise _still_encrypts(
        cluster,
        Counter(used for _, _, used in stale(etcd, key)),
        "it is still used for new writes; does an API server lag behind?",
    )


def _touch(core: client.CoreV1Api, namespace: str, name: str) -> str:
    """Rewrite a Secret. Return why that failed, "" if it did not or the Secret is gone."""
    try:
        core.patch_namespaced_secret(name, namespace, {}, _request_timeout=API_TIMEOUT_S, _preload_content=False)
    except ApiException as error:
        if error.status != HTTPStatus.NOT_FOUND:
            return f"{namespace}/{name}: {error.status} {error.reason}"
    return ""
