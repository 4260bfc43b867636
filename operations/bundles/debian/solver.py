"""apt in a folder of its own: it verifies the lists' signatures with Debian's keys, and chooses packages. Never installs.

It sees a copy of the lists, no system, and no setting of this machine.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from operations.bundles.debian.archive import ARCH, Suite
from operations.bundles.stage import ArtefactError
from tools import apt

_CHOSEN = re.compile(r"^'file:(\S+)' ", re.MULTILINE)
_SETTINGS = """\
Dir::Etc "{home}/etc/";
Dir::Etc::parts "/dev/null";
Dir::Etc::main "/dev/null";
Dir::Etc::sourcelist "{home}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State "{home}/state/";
Dir::State::status "{home}/nothing-installed";
Dir::Cache "{home}/cache/";
APT::Architecture "{arch}";
APT::Architectures {{ "{arch}"; }};
APT::Sandbox::User "root";
APT::Get::List-Cleanup "true";
Acquire::Languages "none";
Acquire::By-Hash "no";
"""


class Solver:
    """apt with the lists of some suites, which lie below `tree` as host/path. Raises ArtefactError if one isn't Debian's."""

    def __init__(self, home: Path, tree: Path, suites: Sequence[Suite], keyring: str = "") -> None:
        for folder in ("etc", "state/lists/partial", "cache/archives/partial"):
            (home / folder).mkdir(parents=True, exist_ok=True)
        (home / "nothing-installed").touch()
        (home / "apt.conf").write_text(_SETTINGS.format(home=home, arch=ARCH))
        lines = [
            f"deb [signed-by={keyring or apt.KEYRING}] file:{tree / suite.archive} {suite.name} main\n"
            for suite in suites
        ]
        (home / "sources.list").write_text("".join(lines))
        self._home, self._tree = home, tree
        self._run("update", "--error-on=any")

    def chosen(self, names: Sequence[str]) -> set[str]:
        """Return host/path of packages with all that they depend on and recommend, on an empty system."""
        # Not --simulate, which prints them in an order that takes ten times as long to find.
        said = self._run("install", "--print-uris", "--install-recommends", *names)
        return {str(Path(unquote(path)).relative_to(self._tree)) for path in _CHOSEN.findall(said)}

    def _run(self, *words: str) -> str:
        environment = {**os.environ, "APT_CONFIG": str(self._home / "apt.conf"), "LC_ALL": "C.UTF-8"}
        try:
            done = subprocess.run(
                ["apt-get", "-qq", *words], env=environment, capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            raise ArtefactError(
                "apt-get is missing on this machine, so nothing chooses and verifies Debian packages; make the bundle on "
                "Debian, or without them: --no-debian"
            ) from None
        if done.returncode:
            said = "\n".join(f"  {line}" for line in (done.stderr or done.stdout).strip().splitlines()[-8:])
            raise ArtefactError(f"apt doesn't accept Debian's lists, or can't choose packages from them:\n{said}")
        return done.stdout
