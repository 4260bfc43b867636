"""The installer, roles and docs/explanation/hosts.md have the same list of packages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Undefined
from jinja2.nativetypes import NativeEnvironment

from cluster.links import Cable
from cluster.packages import PACKAGES, When, needed, reference
from cluster.roce import Roce
from operations.provisioning.machines import machines
from operations.provisioning.render import tree
from tests.provisioning.support import cluster

ROOT = Path(__file__).parents[2]
DOC = ROOT / "docs" / "explanation" / "hosts.md"
TIME_DAEMONS = {"chrony", "ntpsec", "openntpd", "systemd-timesyncd"}
"""Debian's packages that provide time-daemon and therefore conflict."""


class Holds(Undefined):
    """Let every condition of a role hold, so that what it requires only on some hosts counts too."""

    def __bool__(self) -> bool:
        return True


def roles() -> list[str]:
    (play,) = yaml.safe_load((ROOT / "site.yml").read_text())
    return [role["role"] for role in play["roles"]]


def asked(role: str) -> set[str]:
    """Return the packages of all commands that a role requires, anywhere."""

    def required() -> Iterator[dict[str, str]]:
        for part in ("defaults", "vars"):
            path = ROOT / "roles" / role / part / "main.yml"
            values: dict[str, Any] = yaml.safe_load(path.read_text()) if path.is_file() else {}
            for name, value in (values or {}).items():
                if name.endswith("_commands"):
                    native = NativeEnvironment(undefined=Holds).from_string(value).render() if "{" in value else value
                    assert isinstance(native, dict), f"{role}: {name}"
                    yield native

    return {package for commands in required() for package in commands.values()}


def test_the_list_has_exactly_the_packages_that_roles_require() -> None:
    listed = {role: {package.name for package in PACKAGES if role in package.roles} for role in roles()}
    assert {role: asked(role) for role in roles()} == listed
    assert {role for package in PACKAGES for role in package.roles} <= set(roles())


def test_roles_require_commands_only_with_a_variable_that_the_test_above_reads() -> None:
    for role in roles():
        text = (ROOT / "roles" / role / "tasks" / "main.yml").read_text()
        names = re.findall(r"\w+_commands\b", "".join(re.findall(r"^ +commands: .*", text, re.MULTILINE)))
        assert bool(names) == bool(asked(role)) == ("commands:" in text), role


def test_the_installer_brings_every_package_that_every_machine_needs() -> None:
    everywhere = {package.name for package in PACKAGES if package.when is When.ALWAYS}
    for name, text in tree(machines(cluster())).items():
        if name.endswith("preseed.cfg"):
            (brought,) = re.findall(r"^d-i pkgsel/include string (.*)$", text, re.MULTILINE)
            assert set(brought.split()) == everywhere
    assert len(TIME_DAEMONS & everywhere) == 1


def test_a_machine_with_cables_has_lldpd_and_one_with_rails_perftest() -> None:
    one = cluster()
    site, host = one.spec.sites["sjc1"], one.hosts["gpu"][0]
    usual = set(needed(site, "gpu", host))
    cabled = host.model_copy(update={"links": {"node0": Cable(switch="leaf-1", port=17)}})
    assert set(needed(site, "gpu", cabled)) - usual == {"lldpd"}
    no_cable = host.model_copy(update={"links": {"node0": Cable(mac="b8:59:9f:20:00:01")}})
    assert set(needed(site, "gpu", no_cable)) == usual
    railed = site.model_copy(update={"roce": Roce.model_validate({"rails": {"gpu": {"rail-0": {"interface": "a0"}}}})})
    assert set(needed(railed, "gpu", host)) - usual == {"perftest"}
    assert set(needed(railed, "store", host)) == usual


def test_docs_have_the_list() -> None:
    text = DOC.read_text()
    table = re.compile(r"(?<=<!-- packages -->\n).*?(?=<!-- end of packages -->\n)", re.DOTALL)
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        text = table.sub(lambda _: f"\n{reference()}\n", text)
        DOC.write_text(text)
    assert table.findall(text) == [f"\n{reference()}\n"], "run `make golden`"
