"""Links in the documentation lead to files and to their headings, and guides for developers name what is in the tree."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/*.md"), ROOT / "tests/faults/README.md"]
)

GUIDES = ("CONTRIBUTING.md", "ARCHITECTURE.md", "docs/reference/where-to-add.md", "docs/how-to/add-a-cloud.md")
TOP = "|".join(sorted(path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] not in "._"))


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


def code(guide: str) -> Iterator[tuple[int, str]]:
    """Yield (line, code) for the code in a guide's sentences and tables."""
    fenced = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
    text = fenced.sub(lambda block: "\n" * block[0].count("\n"), (ROOT / guide).read_text())
    for number, line in enumerate(text.splitlines(), start=1):
        yield from ((number, span) for span in re.findall(r"`([^`]+)`", line))


def test_guides_for_developers_name_files_that_exist() -> None:
    """<word> stands for any name."""
    missing = [
        f"{guide}:{number}: {span}"
        for guide in GUIDES
        for number, span in code(guide)
        if re.fullmatch(rf"(?:{TOP})/[\w./<>*-]*", span) and not any(ROOT.glob(re.sub(r"<\w+>", "*", span).rstrip("/")))
    ]
    assert missing == []


def test_the_newest_release_notes_name_pages_that_exist() -> None:
    releases = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]
    newest = next(notes for notes in releases if not notes.startswith("Unreleased"))
    pages = re.findall(r"\bdocs/[\w./-]+\.(?:md|json|yaml)\b", newest)
    assert len(pages) > 10
    assert [page for page in pages if not (ROOT / page).exists()] == []


def test_guides_for_developers_name_constants_and_functions_that_exist() -> None:
    """Names are code with a capital letter or an underscore; a file's name counts as its stem."""
    names = {
        name: f"{guide}:{number}"
        for guide in GUIDES
        for number, span in code(guide)
        if re.fullmatch(r"@?[A-Za-z_][\w.]*(\(.*\))?", span) and not span.endswith((".md", ".yaml", ".yml", ".toml"))
        for name in re.findall(r"\w+", span.partition("(")[0])
        if re.search(r"[A-Z]\w\w|\w_\w|^_\w", name)
    }
    assert len(names) > 50
    search = ["git", "grep", "-ohwE", "|".join(names), "--", "*.py", "*.toml", "*.yml", "Makefile"]
    words = subprocess.run(search, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    known = {*words, *(Path(path).stem for path in listed.split())}
    assert {name: place for name, place in names.items() if name not in known} == {}
