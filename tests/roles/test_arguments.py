"""Each role's defaults and argument specs agree, and its templates read only declared variables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from jinja2 import Environment, StrictUndefined

ROOT = Path(__file__).parents[2]
ROLES = sorted(path.parent.parent for path in ROOT.glob("roles/*/tasks/main.yml"))


@pytest.fixture(params=ROLES, ids=lambda role: role.name)
def role(request):
    return request.param


def load(path):
    return yaml.safe_load(path.read_text()) or {}


def options(role):
    return load(role / "meta" / "argument_specs.yml")["argument_specs"]["main"]["options"]


def test_every_variable_has_a_default_or_is_required(role):
    defaults = set(load(role / "defaults" / "main.yml"))
    required = {name for name, option in options(role).items() if option.get("required")}
    assert defaults | required == set(options(role))
    assert not defaults & required


def test_every_variable_starts_with_the_name_of_its_role(role):
    names = (
        {*options(role), *(name.lstrip("_") for name in load(role / "vars" / "main.yml"))}
        if (role / "vars").exists()
        else set(options(role))
    )
    assert {name for name in names if not name.startswith(f"{role.name}_")} == set()


def test_every_variable_is_described_in_the_readme(role):
    text = (role / "README.md").read_text()
    assert {name for name in options(role) if f"`{name}`" not in text} == set()


def test_every_default_has_its_declared_type(role):
    types = {"str": str, "bool": bool, "int": int, "dict": dict, "list": list, "path": str}
    for name, value in load(role / "defaults" / "main.yml").items():
        option = options(role)[name]
        assert isinstance(value, types[option["type"]]), name
        items = value if isinstance(value, list) else [value]
        assert all(item in option.get("choices", items) for item in items), name


def test_no_variable_of_one_role_is_read_by_another(role):
    others = [other for other in ROLES if other != role]
    names = {name for other in others for name in options(other)}
    for path in role.rglob("*"):
        if path.is_file() and path.suffix in (".yml", ".j2"):
            read = set(re.findall(r"\b[a-z]+_[a-z_]+\b", path.read_text()))
            assert read & names == set(), path


def test_only_the_token_and_the_keys_are_kept_out_of_logs():
    hidden = {name for role in ROLES for name, option in options(role).items() if option.get("no_log")}
    assert hidden == {"kubelet_token", "vpn_gateway_keys"}


def test_templates_read_only_declared_variables_and_fail_on_others(role):
    values = {name: load(role / "defaults" / "main.yml").get(name, {}) for name in options(role)}
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    for template in role.glob("templates/*.j2"):
        assert environment.from_string(template.read_text()).render(values).strip(), template


def test_every_program_names_its_interpreter(role):
    """execve(2), and so systemd and Ansible, refuse a script without an interpreter line; a shell would guess."""
    lists = load(role / "vars" / "main.yml").values() if (role / "vars").exists() else ()
    files = [file for value in lists if isinstance(value, list) for file in value if isinstance(file, dict)]
    programs = {file["path"]: file["text"] for file in files if file.get("mode") in ("0755", "0700", "0750")}
    for path, text in programs.items():
        match = re.match(r"{{ lookup\('ansible.builtin.(file|template)', '([^']+)'", text)
        first = (role / f"{match[1]}s" / match[2]).read_text() if match else text
        assert first.startswith("#!"), path


def test_site_yml_is_short_and_runs_every_role():
    text = (ROOT / "site.yml").read_text()
    assert len(text.splitlines()) < 40
    (play,) = yaml.safe_load(text)
    assert [entry["role"] for entry in play["roles"]] == [
        "base",
        "time",
        "firewall",
        "hardening",
        "boot",
        "neighbours",
        "links",
        "roce",
        "storage_host",
        "gpu",
        "containerd",
        "flannel",
        "node_metrics",
        "kubelet",
        "preflight",
    ]
    (routers,) = yaml.safe_load((ROOT / "gateways.yml").read_text())
    assert {entry["role"] for entry in (*play["roles"], *routers["roles"])} == {role.name for role in ROLES}
    assert all(entry["tags"] == [entry["role"]] for entry in play["roles"])
    assert "any_errors_fatal" not in play
