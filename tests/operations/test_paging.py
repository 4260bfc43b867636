"""Lists, page by page: what a page asks for, and what follows when etcd no longer has the first page's state."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from clients.paging import PAGE, Page, each, models

Fetch = Callable[[int | None, str], Page[str]]


def listing(pages: dict[str, Page[str] | int], requests: list[tuple[int | None, str]]) -> Fetch:
    """Return a fetch that gives the page of a token, or fails with a status; "all" is the answer without a limit."""

    def fetch(limit: int | None, following: str) -> Page[str]:
        requests.append((limit, following))
        answer = pages[following if limit else "all"]
        if isinstance(answer, int):
            raise ApiException(status=answer)
        return answer

    return fetch


def test_pages_follow_one_another_until_one_has_no_token() -> None:
    requests: list[tuple[int | None, str]] = []
    pages: dict[str, Page[str] | int] = {"": Page("ab", "1"), "1": Page("", "2"), "2": Page("c", "")}
    assert list(each(listing(pages, requests), str)) == ["a", "b", "c"]
    assert requests == [(PAGE, ""), (PAGE, "1"), (PAGE, "2")]


def test_a_page_is_read_only_when_it_is_needed() -> None:
    requests: list[tuple[int | None, str]] = []
    assert next(each(listing({"": Page("ab", "1"), "1": 500}, requests), str)) == "a"
    assert requests == [(PAGE, "")]


def test_an_expired_list_is_read_again_at_once_and_nothing_is_yielded_twice() -> None:
    requests: list[tuple[int | None, str]] = []
    pages: dict[str, Page[str] | int] = {"": Page("ab", "1"), "1": 410, "all": Page("xbc", "")}
    assert list(each(listing(pages, requests), str)) == ["a", "b", "x", "c"]
    assert requests == [(PAGE, ""), (PAGE, "1"), (None, "")]


@pytest.mark.parametrize(
    "pages", [{"": 410}, {"": Page("a", "1"), "1": 500}, {"": Page("a", "1"), "1": 410, "all": 410}]
)
def test_any_other_error_ends_the_list(pages: dict[str, Page[str] | int]) -> None:
    with pytest.raises(ApiException):
        list(each(listing(pages, []), str))


def test_models_of_the_library_are_paged_too() -> None:
    calls: list[dict[str, Any]] = []

    def listed(namespace: str, **query: Any) -> Any:
        calls.append({"namespace": namespace, **query})
        name, following = ("b", None) if query["_continue"] else ("a", "1")
        item = SimpleNamespace(metadata=SimpleNamespace(namespace=namespace, name=name))
        return SimpleNamespace(items=[item], metadata=SimpleNamespace(_continue=following))

    items = models(listed, "x", timeout_s=3, label_selector="a=b")
    assert [each_.metadata.name for each_ in items] == ["a", "b"]
    common = {"namespace": "x", "label_selector": "a=b", "limit": PAGE, "_request_timeout": 3}
    assert calls == [{**common, "_continue": None}, {**common, "_continue": "1"}]
