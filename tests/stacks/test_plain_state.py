"""What the ordinary CLI is refused before it asks a cloud: a second stack next to this checkout's own, another secrets provider."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import subprocess
from pathlib import Path

import pulumi
import pytest

from stacks import plain
from stacks.backend import PROJECT, chosen, own_folder, refuse_second
from stacks.encryption import refuse_other_than_the_fleets
from stacks.errors import OtherStateError, PassphraseError, StackError

KEY = "awskms://alias/menagerie?region=eu-west-1"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A checkout whose own folder has a stack ibis with a resource."""
    keep(tmp_path / ".menagerie" / "ibis", [{"urn": "a"}])
    return tmp_path / ".menagerie" / "ibis"


def keep(state: Path, resources: list[object] | None, *, packed: bool = False) -> None:
    folder = own_folder(state).own / ".pulumi" / "stacks" / PROJECT
    folder.mkdir(parents=True, exist_ok=True)
    latest = {} if resources is None else {"latest": {"resources": resources}}
    text = json.dumps({"version": 3, "checkpoint": {"stack": "ibis", **latest}}).encode()
    (folder / ("ibis.json.gz" if packed else "ibis.json")).write_bytes(gzip.compress(text) if packed else text)


def refused(state: Path, **environment: str) -> str:
    logins = {"PULUMI_CREDENTIALS_PATH": str(state.parents[1] / "logins")}
    with pytest.raises(OtherStateError) as error:
        refuse_second("ibis", state, state.parents[1], {**logins, **environment})
    return str(error.value)


def login(root: Path, url: str) -> None:
    (root / "logins").mkdir()
    (root / "logins" / "credentials.json").write_text(json.dumps({"current": url}))


def test_a_variable_that_names_another_backend_is_refused_with_the_place_and_both_ways_out(state: Path) -> None:
    text = refused(state, PULUMI_BACKEND_URL="s3://team?region=eu-west-1")
    assert f"ibis has its stack in {state}/pulumi" in text
    assert "PULUMI_BACKEND_URL names s3://team, where this run would build a second ibis" in text
    assert "to move the stack there: ./menagerie state move ibis\n" in text
    assert f"export PULUMI_BACKEND_URL='file://{state}/pulumi?metadata=skip'" in text


def test_the_projects_backend_counts_before_a_login(state: Path) -> None:
    (state.parents[1] / "Pulumi.yaml").write_text("backend: {url: 'gs://team'}\n")
    login(state.parents[1], "s3://mine")
    assert "Pulumi.yaml names gs://team" in refused(state)


def test_the_way_out_of_a_login_names_it_to_menagerie_which_prefers_the_folder(state: Path) -> None:
    login(state.parents[1], "azblob://team?storage_account=apes")
    move = next(line for line in refused(state).splitlines() if "state move" in line).partition(": ")[2]
    variable, *command = shlex.split(move)
    name, _, url = variable.partition("=")
    assert command == ["./menagerie", "state", "move", "ibis"]
    backend = chosen("ibis", state, state.parents[1], {name: url}, is_lab=False)
    assert backend.url == "azblob://team?storage_account=apes"


def test_without_any_setting_the_cli_goes_to_pulumi_cloud(state: Path) -> None:
    assert "pulumi login names https://api.pulumi.com" in refused(state)


def test_the_way_out_to_stay_is_accepted(state: Path) -> None:
    export = refused(state, PULUMI_BACKEND_URL="s3://team").splitlines()[-1].partition(": ")[2]
    shown = subprocess.run(
        ["/bin/sh", "-c", f"{export}; echo $PULUMI_BACKEND_URL"], capture_output=True, text=True, check=True
    )
    refuse_second("ibis", state, state.parents[1], {"PULUMI_BACKEND_URL": shown.stdout.strip()})


@pytest.mark.parametrize("url", ["file://{}/pulumi", "file://{}/../ibis/pulumi/", "file://~/.menagerie/ibis/pulumi"])
def test_the_folder_itself_may_be_written_in_other_ways(state: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(state.parents[1]))
    refuse_second("ibis", state, state.parents[1], {"PULUMI_BACKEND_URL": url.format(state)})


def test_a_folder_without_the_stack_is_no_reason(state: Path) -> None:
    (own_folder(state).own / ".pulumi" / "stacks" / PROJECT / "ibis.json").unlink()
    refuse_second("ibis", state, state.parents[1], {"PULUMI_BACKEND_URL": "s3://team"})


@pytest.mark.parametrize("resources", [None, []])
@pytest.mark.parametrize("packed", [False, True])
def test_an_empty_stack_is_to_be_removed_because_it_can_not_be_moved_over_a_built_one(
    tmp_path: Path, resources: list[object] | None, packed: bool
) -> None:
    keep(tmp_path / ".menagerie" / "ibis", resources, packed=packed)
    text = refused(tmp_path / ".menagerie" / "ibis", PULUMI_BACKEND_URL="s3://team")
    assert text.endswith("/pulumi?metadata=skip' pulumi stack rm ibis --preserve-config --yes")
    assert "state move" not in text


def test_a_stack_of_an_unknown_form_counts_as_one_with_resources(state: Path) -> None:
    (own_folder(state).own / ".pulumi" / "stacks" / PROJECT / "ibis.json").write_text("half")
    assert "./menagerie state move ibis" in refused(state, PULUMI_BACKEND_URL="s3://team")


@pytest.mark.parametrize(
    ("fleet", "own"),
    [
        ("", "encryptionsalt: v1:x\n"),
        ("secretsprovider: passphrase\n", "encryptionsalt: v1:x\n"),
        (f"secretsprovider: {KEY}\n", f"secretsprovider: {KEY}\nencryptedkey: x\n"),
        (f"secretsprovider: {KEY}\n", "secretsprovider: gcpkms://of-this-one\n"),
        (f"secretsprovider: {KEY}\n", "secretsprovider: passphrase\nencryptionsalt: v1:x\n"),
    ],
)
def test_the_fleets_provider_or_one_that_the_stacks_file_names_is_right(tmp_path: Path, fleet: str, own: str) -> None:
    (tmp_path / "Pulumi.yaml").write_text(f"name: menagerie\n{fleet}")
    (tmp_path / "Pulumi.ibis.yaml").write_text(own)
    refuse_other_than_the_fleets(tmp_path / "Pulumi.ibis.yaml")


@pytest.mark.parametrize(
    ("own", "by"),
    [
        ("encryptionsalt: v1:x\n", "a passphrase"),
        ("secretsprovider: default\nencryptionsalt: v1:x\n", "a passphrase"),
        ("config: {}\n", "the backend"),
        (None, "the backend"),
    ],
)
def test_a_stack_that_the_cli_encrypted_in_its_own_way_is_refused(tmp_path: Path, own: str | None, by: str) -> None:
    (tmp_path / "Pulumi.yaml").write_text(f"secretsprovider: {KEY}\n")
    if own is not None:
        (tmp_path / "Pulumi.ibis.yaml").write_text(own)
    with pytest.raises(PassphraseError) as error:
        refuse_other_than_the_fleets(tmp_path / "Pulumi.ibis.yaml")
    assert f"but {by} encrypts those of ibis" in str(error.value)
    assert f"pulumi stack change-secrets-provider '{KEY}' -s ibis" in str(error.value)
    assert ("`secretsprovider: passphrase` into Pulumi.ibis.yaml" in str(error.value)) is (by == "a passphrase")


def test_the_cli_must_change_to_the_fleets_passphrase_too(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("secretsprovider: passphrase\n")
    with pytest.raises(PassphraseError, match="change-secrets-provider passphrase -s ibis"):
        refuse_other_than_the_fleets(tmp_path / "Pulumi.ibis.yaml")


def place_cli(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str, organization: str = "organization") -> None:
    """Put a program with the name of the CLI on PATH."""
    cli = folder / "bin" / "pulumi"
    cli.parent.mkdir()
    cli.write_text(f"#!/bin/sh\n{script}\n")
    cli.chmod(0o755)
    monkeypatch.setenv("PATH", f"{cli.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(pulumi, "get_stack", lambda: "ibis")
    monkeypatch.setattr(pulumi, "get_project", lambda: "menagerie")
    monkeypatch.setattr(pulumi, "get_organization", lambda: organization)


@pytest.mark.parametrize(("organization", "stack"), [("organization", "ibis"), ("apes", "apes/menagerie/ibis")])
def test_the_outputs_are_read_in_the_checkout_from_the_very_stack(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, organization: str, stack: str
) -> None:
    place_cli(monkeypatch, tmp_path, """printf '{"cwd": "%s", "said": "%s"}' "$PWD" "$*" """, organization)
    said = f"stack output --show-secrets --json --stack {stack} --non-interactive"
    assert plain.outputs(tmp_path) == {"cwd": str(tmp_path), "said": said}


def test_outputs_that_can_not_be_read_are_an_error_with_the_clis_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place_cli(monkeypatch, tmp_path, "echo 'error: passphrase must be set with PULUMI_CONFIG_PASSPHRASE' >&2; exit 255")
    with pytest.raises(StackError) as error:
        plain.outputs(tmp_path)
    assert "unknown whether an operation holds it. Nothing was changed. passphrase must be set" in str(error.value)
    assert str(error.value).endswith("--stack ibis --non-interactive >/dev/null")


def test_a_cli_that_is_not_on_path_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place_cli(monkeypatch, tmp_path, "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StackError, match="pulumi is not on PATH"):
        plain.outputs(tmp_path)
