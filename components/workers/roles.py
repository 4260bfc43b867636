"""The roles' declarations, evaluated as Ansible evaluates them, for hosts that Ansible does not configure.

Files under ``roles/`` are the one place that says what a worker is. Their templates use a dozen words of Ansible's
own beside Jinja's; a test compares every result with that of the real ``ansible-playbook``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml
from jinja2 import StrictUndefined
from jinja2.nativetypes import NativeEnvironment
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from cluster.project import ROOT

ORDER = ("base", "neighbours", "containerd", "flannel", "kubelet")
"""That of site.yml."""
FOLDER = ROOT / "roles"
_MODULES = ("host_state", "kubelet_join")


class Declaration(NamedTuple):
    """One task of a role: the state that a module of ours brings about."""

    role: str
    module: str
    arguments: dict[str, Any]


def declarations(variables: Mapping[str, Any]) -> tuple[Declaration, ...]:
    """What the roles declare with these variables, in order. `inventory_hostname` must be among them.

    As in Ansible, a role's defaults give way to `variables`, and these to the role's own ``vars``.
    """
    return tuple(found for role in ORDER for found in _Role(role, variables).declarations())


def _joined(parts: Iterator[Any]) -> Any:
    """Ansible gives the value of an expression that stands alone as it is, and text of anything else."""
    values = list(parts)
    return values[0] if len(values) == 1 else "".join(str(value) for value in values)


class _Context(Context):
    """A role's own variables may be templates, which are evaluated when they are asked for. What it is given never is one."""

    def resolve_or_missing(self, key: str) -> Any:
        found = super().resolve_or_missing(key)
        environment = self.environment
        assert isinstance(environment, _Environment)
        return environment.role.value(found) if environment.role.is_own(key) and found is not missing else found


class _Environment(ImmutableSandboxedEnvironment, NativeEnvironment):
    """Even a role's text reaches no attribute of Python's."""

    context_class = _Context

    def __init__(self, role: _Role) -> None:
        super().__init__(undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
        self.role = role
        self.globals["lookup"] = role.lookup
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
                    f"roles/{self._name}: {module} is no declaration that a host can be given without Ansible"
                )
            yield Declaration(self._name, module, self.value(task[module]))

    def is_own(self, variable: str) -> bool:
        """Whether the value of a variable is the role's text, in its defaults or vars."""
        return variable in self._own

    def value(self, raw: Any) -> Any:
        """A text of the role's own, with every template in it evaluated."""
        if isinstance(raw, str):
            return self._rendered(raw) if "{{" in raw or "{%" in raw else raw
        if isinstance(raw, Mapping):
            return {key: self.value(each) for key, each in raw.items()}
        return [self.value(each) for each in raw] if isinstance(raw, list | tuple) else raw

    def lookup(self, plugin: str, name: str, rstrip: bool = True) -> str:
        """Ansible's lookups of the role's own templates and files."""
        folder = {"ansible.builtin.template": "templates", "ansible.builtin.file": "files"}[plugin]
        text = (FOLDER / self._name / folder / name).read_text()
        if folder == "templates":
            return str(self._rendered(text))
        return text.rstrip() if rstrip else text

    def _rendered(self, text: str) -> Any:
        template = self._environment.from_string(text)
        # Not render(): Jinja's own would read numbers out of what was joined.
        return _joined(template.root_render_func(template.new_context(self._variables)))
