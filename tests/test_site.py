"""The site has every page of docs/ once, and renders it like a code host. `make site` finds dead links and anchors."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from markdown import Markdown
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]


def entries(nav: list[Any]) -> Iterator[str]:
    for each in nav:
        if isinstance(each, str):
            yield each
        else:
            (inside,) = each.values()
            yield from entries(inside)


def test_every_page_is_in_the_navigation_once() -> None:
    counted = Counter(entries(PROJECT["nav"]))
    assert [page for page, times in counted.items() if times > 1] == []
    assert sorted(counted) == [str(page.relative_to(DOCS)) for page in PAGES]


def test_the_navigation_has_six_groups() -> None:
    groups = [next(iter(group)) for group in PROJECT["nav"]]
    assert groups == ["Start", "How-to", "Runbooks", "Reference", "Explanation", "Decisions"]


def test_pages_link_only_to_files_on_the_site() -> None:
    """Folders have no page on the site. Files outside docs/ are named as code."""
    wrong = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text()):
            target = (page.parent / link).resolve()
            if "://" not in link and not (target.is_file() and target.is_relative_to(DOCS)):
                wrong.append(f"{page.relative_to(ROOT)}: {link}")
    assert wrong == []


def test_files_named_as_code_exist() -> None:
    wrong = []
    for page in PAGES:
        for name in re.findall(r"`((?:\w[\w.-]*/)*\w[\w.-]*\.md)`", page.read_text()):
            if not any((folder / name).exists() for folder in (ROOT, DOCS / "runbooks")):
                wrong.append(f"{page.relative_to(ROOT)}: {name}")
    assert wrong == []


class Shape(HTMLParser):
    """What a reader sees, in order: headings, lists, tables, code, links and words."""

    _CLOSED = frozenset(["ul", "ol", "li", "table", "pre", "blockquote"])
    _SHOWN = _CLOSED | {"h1", "h2", "h3", "h4", "h5", "h6", "tr", "td", "th", "code", "strong", "em", "img"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self._parts: list[str] = []
        self._in_permalink, self._in_pre = False, False
        self.feed(text)
        self.words = "".join(self._parts).split()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "a":
            self._in_permalink = attributes.get("class") == "headerlink"
            if not self._in_permalink and attributes.get("href"):
                self._parts.append(f"<to_{unquote(attributes['href'] or '')}>")
        elif tag in self._SHOWN and not (self._in_pre and tag == "code"):
            self._parts.append(f" <{tag}> ")
        elif tag in ("p", "div", "br"):
            self._parts.append(" ")
        self._in_pre = self._in_pre or tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        self._in_permalink = self._in_permalink and tag != "a"
        self._in_pre = self._in_pre and tag != "pre"
        if tag in self._CLOSED:
            self._parts.append(f" </{tag}> ")

    def handle_data(self, data: str) -> None:
        if not self._in_permalink:
            self._parts.append(data)


def extensions() -> dict[str, Any]:
    """Return the extensions of zensical.toml. TOML nests names with a dot."""
    configured = dict(PROJECT["markdown_extensions"])
    return {f"pymdownx.{name}": options for name, options in configured.pop("pymdownx").items()} | configured


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_site_renders_a_page_like_a_code_host(page: Path) -> None:
    """Python-Markdown needs an indent of four where CommonMark accepts two, so content of list items is indented by four."""
    text, configured = page.read_text(), extensions()
    on_site = Shape(Markdown(extensions=list(configured), extension_configs=configured).convert(text)).words
    assert on_site == Shape(MarkdownIt("commonmark").enable("table").render(text)).words
