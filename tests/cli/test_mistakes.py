"""Mistyped, forgotten and refused input: the message, and that nothing happens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.errors import MenagerieError
from cluster.spec import Cloud, Cluster
from inventories.report import Failure, HostReport, RunReport
from operations import build, readiness
from operations.configure import workers_error
from sandbox.lab.errors import ForeignLabError
from stacks.automation import ClusterStack
from stacks.errors import PassphraseError, StackLockedError
from tests.cli.terminal import Menagerie

ON_ONE = ("up", "configure", "preview", "destroy", "status", "verify", "kubeconfig")
WITH_JSON = ("up", "configure", "preview", "destroy", "status", "verify")


def fails(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let `up` raise an error."""

    def up(*_: object) -> None:
        raise error

    monkeypatch.setattr(build, "up", up)


@pytest.mark.parametrize("verb", ("check", *ON_ONE))
def test_for_a_mistyped_cluster_the_nearest_is_named(menagerie: Menagerie, verb: str) -> None:
    ran = menagerie(verb, "lba")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no cluster lba; did you mean lab?" in ran.err


@pytest.mark.parametrize("verb", WITH_JSON)
def test_a_bad_spec_is_a_json_document_with_its_problems(menagerie: Menagerie, verb: str) -> None:
    ran = menagerie(verb, "lba", "--json")
    error = ran.json["error"]
    assert (ran.code, error["code"], error["exit_code"]) == (2, "bad-spec", 2)
    assert [problem["code"] for problem in error["problems"]] == ["CFG-016"]


def test_a_failed_check_prints_the_same_document_as_a_passed_one(menagerie: Menagerie) -> None:
    good, bad = menagerie("check", "lab", "--json"), menagerie("check", "lba", "--json")
    assert (good.code, bad.code) == (0, 2)
    assert set(good.json) == set(bad.json) == {"clusters", "problems"}
    assert good.json == {"clusters": ["lab"], "problems": []}
    assert bad.json["problems"][0]["hint"] == "write lab"


def test_a_path_that_does_not_exist_is_named(menagerie: Menagerie) -> None:
    ran = menagerie("check", "nowhere/cluster.yaml")
    assert ran.code == 2
    assert "nowhere/cluster.yaml: error[CFG-010] there is no such file" in ran.err


def test_all_errors_of_a_broken_spec_are_listed_at_once_with_their_places(
    menagerie: Menagerie, spec: Callable[..., Path]
) -> None:
    path = spec(
        ('version: "1.36.4"', "version: 1.36"),
        ("direct_routing: true", "direct_ruoting: true"),
        ("main: {members: 3", "main: {members: 4"),
        ("services: 10.201.0.0/16", "services: 10.200.0.0/24"),
    )
    ran = menagerie("check", str(path))
    assert ran.code == 2
    for place, code in [("3:23", "CFG-004"), ("11:19", "ETC-001"), ("14:9", "NET-001"), ("17:29", "CFG-001")]:
        assert any(line.startswith(f"{path}:{place}: error[{code}]") for line in ran.err.splitlines()), ran.err
    assert "docs/reference/errors.md" in ran.err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("frob",), "No such command 'frob'"),
        (("chekc",), "Did you mean 'check'?"),
        (("up",), "Missing argument 'CLUSTER'"),
        (("up", "lab", "--yess"), "No such option: --yess"),
    ],
)
def test_a_wrong_command_line_is_refused_with_a_hint_to_help(
    menagerie: Menagerie, arguments: tuple[str, ...], text: str
) -> None:
    ran = menagerie(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert text in ran.err
    assert "--help" in ran.err
    assert menagerie(*arguments, "--json").json["error"]["code"] == "usage"


def test_a_noun_without_a_verb_lists_its_verbs(menagerie: Menagerie) -> None:
    ran = menagerie("roce")
    assert ran.code == 2
    assert "error: choose plan or test" in ran.err


def test_for_a_mistyped_proof_the_nearest_and_all_proofs_are_named(menagerie: Menagerie) -> None:
    ran = menagerie("verify", "lab", "--only", "dirct")
    assert ran.code == 2
    assert "no proof dirct; did you mean direct?" in ran.err
    assert "vxlan" in ran.err


@pytest.mark.parametrize("verb", ("apply", "remove"))
def test_a_mistyped_controller_is_refused_before_the_cluster_is_contacted(menagerie: Menagerie, verb: str) -> None:
    ran = menagerie("controllers", verb, "lab", "--only", "tenancy-sink,quotas")
    message = " ".join(ran.err.replace("│", " ").split())
    assert ran.code == 2
    assert "for --only: no controller tenancy-sink; did you mean tenancy-sync or tenancy-capacity?" in message
    assert "no controller quotas there are: tenancy-sync, tenancy-capacity" in message


@pytest.mark.parametrize("words", [("show", "flows"), ("show", "policies", "lab"), ("show", "schema", "pools")])
def test_a_subject_refuses_a_missing_or_superfluous_cluster(menagerie: Menagerie, words: tuple[str, ...]) -> None:
    ran = menagerie(*words)
    assert (ran.code, ran.out) == (2, "")
    assert any(text in ran.err for text in ("name a cluster", "name none", "write cluster or hosts"))


def test_a_section_refuses_options_of_other_sections(menagerie: Menagerie) -> None:
    assert "--last is for backups and operations" in menagerie("status", "lab", "etcd", "--last", "3").err
    assert "--limit is for backups and machines and links" in menagerie("status", "lab", "--limit", "r1").err


def test_a_list_of_proofs_can_be_limited(menagerie: Menagerie) -> None:
    ran = menagerie("verify", "lab", "--list", "--only", "vxlan,direct", "--json")
    assert [proof["name"] for proof in ran.json] == ["direct", "vxlan"]


@pytest.mark.parametrize("verb", ("audit", "status", "verify", "kubeconfig"))
def test_for_an_unbuilt_cluster_the_message_says_how_to_build_it(menagerie: Menagerie, verb: str) -> None:
    ran = menagerie(verb, "lab")
    assert (ran.code, ran.out) == (1, "")
    assert "lab has not been built: file://" in ran.err
    assert "has no stack of that name; run: ./menagerie up lab" in ran.err


IN_AZURE = (
    ("cloud: lab", "cloud: azure"),
    ("region: local", "region: eastus2"),
    ("nodes: 10.77.0.0/24", "nodes: 10.77.0.0/16"),
    ("machine: lab-small", "machine: Standard_L8s_v3"),
    ("disk: lab-folder", "disk: local-nvme"),
)


@pytest.mark.parametrize("verb", ("up", "preview"))
def test_without_credentials_all_that_is_missing_is_listed_and_validate_is_offered(
    menagerie: Menagerie, spec: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(readiness, "missing", lambda *_: ["no subscription: set ARM_SUBSCRIPTION_ID"])
    ran = menagerie(verb, str(spec(*IN_AZURE)), "--json", *(["--yes"] if verb == "up" else []))
    assert (ran.code, ran.json["error"]["code"]) == (2, "not-ready")
    assert "set ARM_SUBSCRIPTION_ID" in ran.err
    assert "amd64/kube-apiserver\n" in ran.err or verb == "destroy"
    assert "./menagerie validate lab" in ran.err


def test_every_cloud_has_a_folder_of_stacks() -> None:
    folders = {path.parent.name for path in (Path(build.TOOLKIT) / "stacks").glob("*/provider.py")}
    assert folders == {cloud.value for cloud in Cloud}


@pytest.mark.parametrize(
    ("cluster", "name", "says"),
    [("lab", "vpn-sjc1-a", "the spec of lab names no secret vpn-sjc1-a; it names no secrets")],
)
def test_a_secret_that_the_spec_does_not_name_is_refused(
    menagerie: Menagerie, cluster: str, name: str, says: str
) -> None:
    ran = menagerie("secret", cluster, name)
    assert ran.code == 2
    assert says in ran.err


def _cloud_cluster(cluster: Cluster) -> Cluster:
    control_plane = cluster.spec.control_plane.model_copy(update={"cloud": "azure"})
    return Cluster(spec=cluster.spec.model_copy(update={"control_plane": control_plane}), hosts=cluster.hosts)


def test_a_cloud_stack_without_a_passphrase_is_refused_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lab_cluster: Cluster
) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE_FILE", raising=False)
    with pytest.raises(PassphraseError, match="set PULUMI_CONFIG_PASSPHRASE_FILE"):
        ClusterStack(_cloud_cluster(lab_cluster), lambda: None, tmp_path / "pulumi", tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_a_passphrase_file_that_does_not_exist_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lab_cluster: Cluster
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", "/nowhere/passphrase")
    with pytest.raises(PassphraseError, match="names /nowhere/passphrase"):
        ClusterStack(lab_cluster, lambda: None, tmp_path / "pulumi", tmp_path / "state")


def test_up_without_a_terminal_asks_for_yes_and_starts_nothing(menagerie: Menagerie) -> None:
    ran = menagerie("up", "lab")
    assert (ran.code, ran.out) == (2, "")
    assert "./menagerie up lab --yes" in ran.err
    assert "./menagerie up lab --dry-run" in ran.err


@pytest.mark.parametrize("typed", ["n\n", "\n", ""])
def test_up_starts_nothing_without_a_yes(menagerie: Menagerie, typed: str) -> None:
    ran = menagerie("up", "lab", typed=typed)
    assert (ran.code, ran.out) == (1, "")
    assert "3 machines at sites" in ran.err
    assert "Nothing was changed." in ran.err


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_destroy_without_a_terminal_deletes_nothing(menagerie: Menagerie, arguments: tuple[str, ...]) -> None:
    ran = menagerie("destroy", "lab", *arguments)
    assert ran.code == 2
    assert "./menagerie destroy lab --yes" in ran.err


@pytest.mark.parametrize("typed", ["lba\n", "y\n", "\n", ""])
def test_destroy_deletes_nothing_when_the_name_is_wrong(menagerie: Menagerie, typed: str) -> None:
    ran = menagerie("destroy", "lab", typed=typed)
    assert ran.code == 1
    assert "is not lab. Nothing was changed." in ran.err


def test_destroy_continues_with_the_right_name(menagerie: Menagerie) -> None:
    ran = menagerie("destroy", "lab", typed="lab\n")
    assert "the verb acted" in ran.err


@pytest.mark.parametrize("verb", ("up", "preview"))
def test_only_root_may_touch_the_lab(menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 65534)
    ran = menagerie(verb, "lab", typed="lab\n")
    assert ran.code == 1
    assert "which need root; use sudo" in ran.err


def test_a_file_that_may_not_be_read_is_named(menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch) -> None:
    fails(monkeypatch, PermissionError(13, "Permission denied", "/state/lab"))
    ran = menagerie("up", "lab", "--yes")
    assert ran.code == 1
    assert "/state/lab" in ran.err
    assert "Traceback" not in ran.err


def _workers_error(host: HostReport) -> MenagerieError:
    failure = Failure("worker-1", "base", "Set sysctls", "no route", unreachable=bool(host.unreachable))
    return workers_error(RunReport({"worker-1": host}, (failure,)))


@pytest.mark.parametrize(
    ("error", "code", "word"),
    [
        (StackLockedError("lab is locked by another run: pid 7"), 3, "locked"),
        (ForeignLabError("the lab of another checkout runs"), 3, "foreign-lab"),
        (_workers_error(HostReport(unreachable=1)), 4, "workers-unreachable"),
        (_workers_error(HostReport(failed=1)), 1, "workers-failed"),
        (OSError(28, "No space left on device", "/cache"), 1, "no-space"),
        (OSError(30, "Read-only file system", "/checkout/.menagerie"), 1, "read-only"),
        (OSError(36, "File name too long", "/x"), 1, "file"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_every_failure_has_the_exit_code_of_the_help_page_and_a_code_in_json(
    menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, word: str
) -> None:
    fails(monkeypatch, error)
    ran = menagerie("up", "lab", "--json")
    assert ran.code == code
    assert ran.json["error"] == {"code": word, "exit_code": code, "text": ran.json["error"]["text"]}
    assert "Traceback" not in ran.err


def test_an_unexpected_error_has_no_traceback_and_says_how_to_get_it(
    menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails(monkeypatch, KeyError("surprise"))
    ran = menagerie("up", "lab", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "unexpected")
    assert "Traceback" not in ran.err
    assert "./menagerie --debug up lab" in ran.err


@pytest.mark.parametrize("arguments", [("--debug", "up", "lab", "--yes"), ("up", "lab", "--yes", "--debug")])
def test_debug_shows_the_traceback_anywhere_on_the_line(
    menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    fails(monkeypatch, KeyError("surprise"))
    ran = menagerie(*arguments)
    assert ran.code == 1
    assert "Traceback" in ran.err


def test_the_environment_can_ask_for_tracebacks(menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch) -> None:
    fails(monkeypatch, StackLockedError("locked"))
    monkeypatch.setenv("MENAGERIE_DEBUG", "1")
    ran = menagerie("up", "lab", "--yes")
    assert ran.code == 3
    assert "Traceback" in ran.err
