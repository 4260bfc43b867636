"""Links in the documentation lead to files and to their headings."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/*.md"), ROOT / "tests/faults/README.md"]
)


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub derives from headings, and the explicit ones."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    derived = {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}
    return derived | set(re.findall(r'<a id="([^"]+)"></a>', text))


def test_every_link_leads_to_an_existing_file_and_heading() -> None:
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


def test_the_runbooks_name_every_fault_of_the_table() -> None:
    faults = re.findall(r"^\| (F[^|]*?) \|", (ROOT / "tests/faults/README.md").read_text(), re.MULTILINE)
    rows = set(re.findall(r"F\d+", " ".join(faults)))
    assert len(rows) > 25
    assert rows - set(re.findall(r"F\d+", (ROOT / "docs/runbooks/index.md").read_text())) == set()
