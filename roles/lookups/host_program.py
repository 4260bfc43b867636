"""Ansible lookup: a program of several modules, as files for host_state."""

from __future__ import annotations

DOCUMENTATION = r"""
name: host_program
author: Menagerie
short_description: A program of several modules, as files for host_state
description:
  - Takes a Python package from the role's files, and returns a list for C(files) of C(host_state), with one file per
    module, and last the command that runs the package.
  - Each program has its own folder below C(/usr/local/lib), with its own copies of shared modules, so a run with
    C(--tags) never leaves a program with another checkout's modules.
options:
  _terms: {description: The package, which has a C(__main__.py)., required: true}
  command: {description: Path of the command on the host., type: str, required: true}
  shared:
    description: Modules of C(roles/module_utils/menagerie_host) that the package imports, by name.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
_roce_program_files: "{{ query('host_program', 'menagerie_roce', command='/usr/local/sbin/menagerie-roce') }}"
"""

RETURN = r"""
_raw: {description: "Files, each with path, text and mode.", type: list, elements: dict}
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

SHARED = Path(__file__).resolve().parents[1] / "module_utils" / "menagerie_host"
PLACED = (".py", ".json")
# -B: nothing is compiled into the folder, so it has only the placed files. -s: the user's own modules are ignored.
COMMAND = """\
#!/usr/bin/python3 -sB
# Placed by Menagerie. The program is in {library}/{package}.
import runpy
import sys

sys.path.insert(0, "{library}")
runpy.run_module("{package}", run_name="__main__")
"""


def library(command: str) -> str:
    """Return the folder of a program's modules."""
    return f"/usr/local/lib/{Path(command).name}"


def declared(package: Path, command: str, shared: Sequence[str] = ()) -> list[dict[str, str]]:
    """Return the files for host_state: modules and data of `package`, then `command`. OSError if one can't be read."""
    sources = sorted(path for path in package.iterdir() if path.suffix in PLACED)
    sources += [SHARED / f"{name}.py" for name in ("__init__", *shared)] if shared else []
    at = library(command)
    files = [
        {"path": f"{at}/{path.parent.name}/{path.name}", "text": path.read_text(), "mode": "0644"} for path in sources
    ]
    text = COMMAND.format(library=at, package=package.name)
    return [*files, {"path": command, "text": text, "mode": "0755"}]


class LookupModule(LookupBase):
    def run(self, terms: list[str], variables: Any = None, **options: Any) -> list[dict[str, str]]:
        self.set_options(var_options=variables, direct=options)
        files = []
        for term in terms:
            main = self.find_file_in_search_path(variables, "files", f"{term}/__main__.py", ignore_missing=True)
            if not main:
                raise AnsibleError(f"the role's files have no {term}/__main__.py")
            files += declared(Path(main).parent, self.get_option("command"), self.get_option("shared"))
        return files
