"""What a page is. A new page is a module in this folder with a `PAGE`, its template, and a line in `PAGES`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from controllers.web.facts import Sight, Site

Values = dict[str, Any]
"""What a template gets, besides what every template gets (`controllers.web.app`)."""


@dataclass(frozen=True)
class Visit:
    """A request for a page. parameters: of its path. sight: what the one who asks may see."""

    site: Site
    parameters: Mapping[str, str]
    sight: Sight


@dataclass(frozen=True)
class Page:
    """A page.

    name: the word for it. path: below the root, with parameters in braces; it ends with "/" or is empty. template: in `templates/`.
    view: returns its values; None if there is no such page, for example of an unknown cluster. It only reads memory.
    nav: its words in the navigation, "" for a page that others link to. whole: only for who may see the whole cluster; otherwise
    the view itself leaves out what may not be seen.
    """

    name: str
    path: str
    template: str
    view: Callable[[Visit], Values | None]
    nav: str = ""
    whole: bool = True

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words of its path, for links in the navigation."""
        return tuple(word for word in self.path.split("/") if word)


class Links:
    """Links of the page at a path, which starts with "/". ``link("cluster", "lab")`` leads to ``cluster/lab/``.

    They are relative, so that pages work below any prefix: a secret, or the path of a proxy.
    """

    def __init__(self, path: str) -> None:
        self._up = "../" * (path.count("/") - 1) or "./"

    def __call__(self, *words: str) -> str:
        """Return the link to a page by the words of its path; without words to the first page."""
        return self._up + "".join(f"{quote(word, safe='')}/" for word in words)

    def file(self, name: str) -> str:
        """Return the link to a static file."""
        return f"{self._up}static/{quote(name)}"
