"""jaguar, the example with machines at a site: the commands in docs and help pages work."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from cli.examples import EPILOGS
from cli.verbs.machines import install, render
from cluster.load import load_cluster
from operations.provisioning.machines import machines
from tests.cli.terminal import Menagerie

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "provisioning-jaguar"
FIRST = "02-00-0a-08-01-0b"


def commands() -> list[list[str]]:
    """Return every `machines ... jaguar ...` and `status jaguar machines ...` in texts for operators, as words."""
    texts = [path.read_text() for path in sorted((ROOT / "docs").rglob("*.md"))]
    texts += [EPILOGS[verb] for verb in (install, render)]
    matches = re.findall(r"\b(?:machines \w+ jaguar|status jaguar machines)[^#`|\n]*", "\n".join(texts))
    return [shlex.split(re.split(r" {2,}", text)[0]) for text in matches]


def test_the_files_of_the_first_machine_are_the_ones_kept(menagerie: Menagerie, tmp_path: Path) -> None:
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites them; review the diff."""
    ran = menagerie("machines", "render", str(ROOT / "examples" / "jaguar"), "-o", str(tmp_path))
    assert (ran.code, "2500 machines, 10003 files changed" in ran.out) == (0, True), ran.err
    served = tmp_path / "sjc1" / "machines"
    files = [served / f"{FIRST}.ipxe", *(served / FIRST).iterdir()]
    made = {str(path.relative_to(served)): path.read_text() for path in files}
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        for path, text in made.items():
            (GOLDEN / path).parent.mkdir(parents=True, exist_ok=True)
            (GOLDEN / path).write_text(text)
    kept = {str(path.relative_to(GOLDEN)): path.read_text() for path in GOLDEN.rglob("*") if path.is_file()}
    assert kept == made
    hosts = re.findall(r"^dhcp-host=.*", (tmp_path / "sjc1" / "dnsmasq.conf").read_text(), re.MULTILINE)
    assert len(hosts) == 2500
    assert hosts[0] == "dhcp-host=02:00:0a:08:01:0b,10.8.1.11,jaguar-gpu-0001"


def test_commands_in_docs_and_help_pages_name_machines_that_it_has() -> None:
    cluster = load_cluster(ROOT / "examples" / "jaguar" / "cluster.yaml")
    calls = commands()
    assert {" ".join(words[:2]) for words in calls} == {"machines render", "status jaguar", "machines install"}
    for words in calls:
        limits = [words[at + 1] for at, word in enumerate(words) if word in ("--limit", "--wipe")]
        assert machines(cluster, limits), words


@pytest.mark.parametrize("folder", ["examples/horus", "examples/ibis", "inventories/lab"])
def test_for_a_cluster_without_provisioning_the_error_names_the_page(
    menagerie: Menagerie, tmp_path: Path, folder: str
) -> None:
    ran = menagerie("machines", "render", str(ROOT / folder), "-o", str(tmp_path))
    assert (ran.code, "docs/how-to/provisioning.md" in ran.err) == (2, True)
