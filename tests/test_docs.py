"""Links of the documentation lead to files, and to headings of them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/*.md"), ROOT / "tests/faults/README.md"]
)


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings, and those that are written."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a id="([^"]+)"></a>', text))


def test_every_link_leads_to_a_file_and_to_a_heading_of_it() -> None:
    dead = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            path, _, anchor = link.partition("#")
            if "://" in path:
                continue
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                dead.append(f"{page.relative_to(ROOT)}: {link}")
    assert dead == []


def test_who_is_on_call_finds_each_fault_of_the_table() -> None:
    faults = re.findall(r"^\| (F[^|]*?) \|", (ROOT / "tests/faults/README.md").read_text(), re.MULTILINE)
    rows = set(re.findall(r"F\d+", " ".join(faults)))
    assert len(rows) > 25
    assert rows - set(re.findall(r"F\d+", (ROOT / "docs/runbooks/index.md").read_text())) == set()
