"""The roles' declarations, evaluated as Ansible evaluates them, for hosts that Ansible does not configure.

The files under ``roles/`` are the only definition of a worker. Their templates use a dozen names of Ansible in addition to
Jinja's; a test compares every result with that of the real ``ansible-playbook``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jinja2 import StrictUndefined
from jinja2.nativetypes import NativeEnvironment
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from cluster.project import TOOLKIT

ORDER = ("base", "neighbours", "containerd", "flannel", "node_metrics", "kubelet")
"""The order of site.yml."""
FOLDER = TOOLKIT / "roles"
_MODULES = ("host_state", "kubelet_join")
# The command of a program of several modules, as roles/lookups/host_program.py writes it.
_STARTER = """\
#!/usr/bin/python3 -sB
# Placed by Menagerie. The program is in {library}/{package}.
import runpy
import sys

sys.path.insert(0, "{library}")
runpy.run_module("{package}", run_name="__main__")
"""


class Declaration(NamedTuple):
    """One task of a role: the state that one of Menagerie's modules establishes."""

    role: str
    module: str
    arguments: dict[str, Any]


def declarations(variables: Mapping[str, Any]) -> tuple[Declaration, ...]:
    """Return what the roles declare with these variables, in order. `inventory_hostname` must be one of them.

    As in Ansible, `variables` override a role's defaults, and the role's own ``vars`` override `variables`.
    """
    return tuple(declaration for role in ORDER for declaration in _Role(role, variables).declarations())


def _joined(parts: Iterator[Any]) -> Any:
    """Join the parts of a template like Ansible: the value of a single expression stays as it is, all else becomes text."""
    values = list(parts)
    return values[0] if len(values) == 1 else "".join(str(value) for value in values)


class _Context(Context):
    """Evaluates a role's own variables, which may be templates, on access. Variables from outside are never templates."""

    def resolve_or_missing(self, key: str) -> Any:
        value = super().resolve_or_missing(key)
        environment = self.environment
        assert isinstance(environment, _Environment)
        return environment.role.value(value) if environment.role.is_own(key) and value is not missing else value


class _Environment(ImmutableSandboxedEnvironment, NativeEnvironment):
    """A sandbox: even a role's own text can't reach Python's attributes."""

    context_class = _Context

    def __init__(self, role: _Role) -> None:
        super().__init__(undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
        self.role = role
        self.globals |= {"lookup": role.lookup, "query": role.query}
        self.filters |= {
            "combine": lambda first, second: {**first, **second},
            "dict2items": _dict2items,
            "from_json": json.loads,
            "regex_replace": lambda text, pattern, new: re.sub(pattern, new, text),
            "to_nice_json": lambda value, sort_keys=True: json.dumps(value, indent=4, sort_keys=sort_keys),
        }


def _dict2items(values: Mapping[str, Any], key_name: str, value_name: str) -> list[dict[str, Any]]:
    return [{key_name: key, value_name: value} for key, value in values.items()]


class _Role:
    def __init__(self, name: str, variables: Mapping[str, Any]) -> None:
        self._name = name
        defaults, own = self._read("defaults"), self._read("vars")
        self._variables = {**defaults, **variables, **own}
        self._own = {*defaults, *own} - (set(variables) - set(own))
        self._environment = _Environment(self)

    def _read(self, part: str) -> dict[str, Any]:
        path = FOLDER / self._name / part / "main.yml"
        return dict(yaml.safe_load(path.read_text())) if path.exists() else {}

    def declarations(self) -> Iterator[Declaration]:
        for task in yaml.safe_load((FOLDER / self._name / "tasks" / "main.yml").read_text()):
            (module,) = set(task) - {"name"}
            if module not in _MODULES:
                raise ValueError(
                    f"roles/{self._name}: module {module} works only with Ansible; hosts in the region need one of: "
                    f"{', '.join(_MODULES)}"
                )
            yield Declaration(self._name, module, self.value(task[module]))

    def is_own(self, variable: str) -> bool:
        """Return whether the value of a variable comes from the role's defaults or vars."""
        return variable in self._own

    def value(self, raw: Any) -> Any:
        """Return a value of the role with every template in it evaluated."""
        if isinstance(raw, str):
            return self._rendered(raw) if "{{" in raw or "{%" in raw else raw
        if isinstance(raw, Mapping):
            return {key: self.value(item) for key, item in raw.items()}
        return [self.value(item) for item in raw] if isinstance(raw, list | tuple) else raw

    def lookup(self, plugin: str, name: str, rstrip: bool = True) -> str:
        """Return a template or file of the role, like Ansible's lookup plugins."""
        folder = {"ansible.builtin.template": "templates", "ansible.builtin.file": "files"}[plugin]
        text = (FOLDER / self._name / folder / name).read_text()
        if folder == "templates":
            return str(self._rendered(text))
        return text.rstrip() if rstrip else text

    def query(self, plugin: str, package: str, command: str) -> list[dict[str, str]]:
        """Return the files of a program of several modules, like the lookup host_program of roles/lookups."""
        if plugin != "host_program":
            raise ValueError(f"roles/{self._name}: lookup {plugin} works only with Ansible")
        library = f"/usr/local/lib/{Path(command).name}"
        modules = sorted((FOLDER / self._name / "files" / package).glob("*.py"))
        starter = _STARTER.format(library=library, package=package)
        return [
            *(
                {"path": f"{library}/{package}/{each.name}", "text": each.read_text(), "mode": "0644"}
                for each in modules
            ),
            {"path": command, "text": starter, "mode": "0755"},
        ]

    def _rendered(self, text: str) -> Any:
        template = self._environment.from_string(text)
        # Not render(): Jinja's native version would parse joined text as Python literals.
        return _joined(template.root_render_func(template.new_context(self._variables)))
