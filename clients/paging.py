"""Lists of a cluster's API, page by page, as client-go's pager reads them (k8s.io/client-go/tools/pager).

All pages of a list show the state at its first page. etcd keeps that state for a few minutes; after that, the API server
answers 410 Gone. The rest is then read at once, from the current state.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from http import HTTPStatus
from typing import Any, Generic, NamedTuple, TypeVar

from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S

PAGE = 500
"""Objects in a page, as in client-go."""

_T = TypeVar("_T")


class Page(NamedTuple, Generic[_T]):
    """A part of a list. following: the token of the next page, "" after the last one."""

    items: Sequence[_T]
    following: str


def each(fetch: Callable[[int | None, str], Page[_T]], key: Callable[[_T], Hashable]) -> Iterator[_T]:
    """Yield all objects of a list, each once.

    fetch: reads the page with a token, "" for the first one, of at most so many objects; None for no limit. It raises
    ApiException. key: what identifies an object within the list.
    """
    yielded: set[Hashable] = set()
    limit: int | None = PAGE
    following = ""
    while True:
        try:
            page = fetch(limit, following)
        except ApiException as error:
            if error.status != HTTPStatus.GONE or not following:
                raise
            limit, following = None, ""
            continue
        for item in page.items:
            if (identity := key(item)) not in yielded:
                yielded.add(identity)
                yield item
        following = page.following
        if not following:
            return


def models(
    method: Callable[..., Any], *inside: str, timeout_s: float = API_TIMEOUT_S, **selectors: str
) -> Iterator[Any]:
    """Yield the library's models from one of its list calls: ``models(core.list_node, label_selector="a=b")``.

    For code that needs models; `clients.kube.Kube.list` yields plain objects, in a fraction of the time. inside: the
    namespace of a namespaced call. Raises ApiException, and urllib3's HTTPError.
    """

    def fetch(limit: int | None, following: str) -> Page[Any]:
        token = following or None
        page = method(*inside, **selectors, limit=limit, _continue=token, _request_timeout=timeout_s)
        return Page(page.items, (page.metadata and page.metadata._continue) or "")

    return each(fetch, lambda item: (item.metadata.namespace, item.metadata.name))
