"""The help pages, and what a help page and a refusal import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.main import named
from cli.verbs.table import chosen, every
from cluster.codes import reference
from tests.cli.terminal import Menagerie

ROOT = Path(__file__).resolve().parents[2]
WRONG_CLUSTER = tuple(
    """
    audit lba
    autoscaler plan lba
    autoscaler run lba
    autoscaler simulate lba x
    bill lba
    bundle lba --fetch -o x
    capacity lba
    ceph facts lba -o x
    ceph render lba --facts docs
    check lba
    configure lba
    controllers apply lba
    controllers remove lba
    destroy lba
    doctor lba
    etcd backup lba
    etcd defragment lba main
    etcd forget lba main --token x
    etcd move-leader lba main m
    etcd recover-space lba main
    etcd replace lba main m
    etcd restore lba main
    etcd roll lba
    expander run lba --cert README.md --key README.md
    keys rotate lba encryption
    kubeconfig lba
    machines install lba
    machines render lba -o x
    reboot lba
    repair lba
    roce plan lba
    roce test lba
    secret lba x
    state move lba
    show alerts lba
    show dashboards lba
    show flows lba
    show monitoring lba
    show outputs lba
    show prices lba
    show topology lba
    show vpn lba
    status lba
    status lba backups
    status lba controllers
    status lba etcd
    status lba keys
    status lba links
    status lba machines
    status lba operations
    status lba tenancy
    tenancy sync lba
    tenancy sync lba --hosts
    unlock lba --operation x
    up lba
    upgrade lba
    validate lba
    verify lba
    vpn configure lba
    vpn request lba
    web lba
    """.strip().splitlines()
)
NOT_BUILT = tuple(
    """
    audit lab
    autoscaler plan lab
    autoscaler run lab --yes
    bill lab
    capacity lab
    ceph facts lab -o facts
    configure lab --yes
    controllers apply lab --dry-run
    controllers remove lab --yes
    destroy horus --dry-run
    etcd backup horus
    etcd defragment lab main --yes
    etcd forget lab main --older-than 7d --yes
    etcd move-leader lab main etcd-main-1
    etcd recover-space lab main --yes
    etcd replace lab main etcd-main-1 --yes
    etcd restore horus main --yes
    etcd roll lab --yes
    expander run lab --cert c.pem --key k.pem
    keys rotate lab encryption --yes
    kubeconfig lab
    machines install jaguar --dry-run
    reboot lab --yes
    repair lab --yes
    roce test jaguar
    secret horus nothing
    show outputs lab
    state move horus --yes
    status lab
    status lab backups
    status lab controllers
    status lab etcd
    status lab keys
    status lab links
    status lab operations
    status lab tenancy
    tenancy sync lab
    unlock lab --operation x --yes
    up horus --yes
    upgrade lab --yes
    verify lab
    vpn configure jaguar
    vpn request jaguar
    web lab --host 10.255.0.1 --cert c.pem --key k.pem
    """.strip().splitlines()
)
READS_SPECS = {
    *("autoscaler simulate", "bundle", "ceph render", "check", "doctor", "machines render", "roce plan", "validate"),
}
LOGINS = ("AWS_", "ARM_", "GOOGLE_", "MENAGERIE_", "PULUMI_BACKEND", "PULUMI_CONFIG")
MOST = 25
"""The other lines of `NOT_BUILT` are refused before, or say that there is nothing."""
LIGHT = (
    *WRONG_CLUSTER,
    *("check", "up --help", "--help", "--version", "frob", "etcd", "up lab --yess", "explain CFG-016"),
    *("reboot lab --parallel many", "status lab --watch soon", "show flows"),
)
HEAVY = {"pulumi", "kubernetes", "ansible_runner", "grpc", "obstore", "urllib3", "cryptography", "highspy", "numpy"}
WALK = f"""
import contextlib, io, sys
from cli.running import run
for line in sys.stdin.read().splitlines():
    with contextlib.redirect_stdout(io.StringIO()):
        run(line.split())
    if heavy := {HEAVY} & set(sys.modules):
        print(line, sorted(heavy), flush=True)
        break
"""
VERBS = [verb.name for verb in every()]


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_without_a_verb_the_help_lists_every_verb_and_the_exit_codes(
    menagerie: Menagerie, arguments: tuple[str, ...]
) -> None:
    page = menagerie(*arguments)
    assert page.code == 0
    assert [verb for verb in VERBS if verb not in page.out] == []
    assert "2 bad input" in page.out


def test_importing_the_command_imports_no_engine() -> None:
    heavy = ("pulumi", "kubernetes", "ansible_runner", "grpc", "cryptography")
    code = f"import sys, cli.main, cli.running; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_pages_checks_and_refusals_import_no_engine() -> None:
    """Run all lines in one process, up to the first that imports one."""
    done = subprocess.run(
        [sys.executable, "-c", WALK], input="\n".join(LIGHT), cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == []
    assert done.stderr.count("did you mean lab?") == len(WRONG_CLUSTER)


def test_importing_what_a_verb_does_imports_no_engine() -> None:
    modules = sorted({path.stem for path in (ROOT / "cli" / "actions").glob("*.py")} - {"__init__"})
    lines = "\n".join(f"import cli.actions.{name}\nif 'pulumi' in sys.modules: sys.exit({name!r})" for name in modules)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, cli\n{lines}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_no_verb_loads_the_engine_for_a_cluster_that_is_not_built(tmp_path: Path) -> None:
    """Run all lines in one process, in a project where nothing is built, up to the first that imports it."""
    (tmp_path / "inventories").mkdir()
    for folder in (ROOT / "inventories" / "lab", ROOT / "examples" / "horus", ROOT / "examples" / "jaguar"):
        (tmp_path / "inventories" / folder.name).symlink_to(folder)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(LOGINS)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", WALK.replace(str(HEAVY), str({"pulumi"}))],
        input="\n".join(NOT_BUILT),
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT), "MENAGERIE_PROJECT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == []
    assert done.stderr.count("has not been built") >= MOST
    assert not any(wrong in done.stderr for wrong in ("this is a bug", "No such option", "Missing", "no cluster"))
    assert [path.name for path in tmp_path.iterdir()] == ["inventories"]


def test_not_built_has_every_verb_that_takes_a_cluster_and_does_more_than_read_its_spec() -> None:
    takes = {
        verb.name for verb in every() if any("CLUSTER" in (param.metavar or "") for param in named(verb.name).params)
    }
    assert takes - READS_SPECS <= {verb.name for line in NOT_BUILT if (verb := chosen(line.split()))}


def test_wrong_cluster_has_every_verb_that_takes_a_cluster() -> None:
    takes = {
        verb.name for verb in every() if any("CLUSTER" in (param.metavar or "") for param in named(verb.name).params)
    }
    assert takes - {"validate"} <= {verb.name for line in WRONG_CLUSTER if (verb := chosen(line.split()))}


def test_the_reference_of_errors_is_current() -> None:
    path = ROOT / "docs" / "reference" / "errors.md"
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        path.write_text(reference())
    assert path.read_text() == reference(), "run `make golden`"
