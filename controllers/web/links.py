"""Links between pages. They are relative, so that pages work below any prefix: a secret, or the path of a proxy."""

from __future__ import annotations

from urllib.parse import quote


class Links:
    """Links of the page at a path, which starts with "/". ``link("cluster", "lab")`` leads to ``cluster/lab/``."""

    def __init__(self, path: str) -> None:
        self._up = "../" * (path.count("/") - 1) or "./"

    def __call__(self, *words: str) -> str:
        """Return the link to a page by the words of its path; without words to the first page."""
        return self._up + "".join(f"{quote(word, safe='')}/" for word in words)

    def file(self, name: str) -> str:
        """Return the link to a static file."""
        return f"{self._up}static/{quote(name)}"
