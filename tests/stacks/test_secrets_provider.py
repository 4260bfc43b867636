"""What encrypts a stack's secrets: no empty passphrase, and a cloud's KMS without a passphrase, under the real engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import pulumi
import pytest
from moto.server import ThreadedMotoServer

from cluster.load import load_cluster
from cluster.spec import Cluster
from stacks import encryption, starting
from stacks.automation import ClusterStack
from stacks.errors import PassphraseError, StackError
from tests.programs import program

ROOT = Path(__file__).resolve().parents[2]
WORD, FILE = "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"
NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def horus() -> Cluster:
    return load_cluster(ROOT / "examples" / "horus" / "cluster.yaml")


@pytest.fixture(autouse=True)
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (WORD, FILE):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("blank", ["", " ", "\n\t "])
@pytest.mark.parametrize("variable", [WORD, FILE])
@pytest.mark.parametrize("folder", ["examples/horus", "inventories/lab"])
def test_an_empty_passphrase_is_refused_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str, variable: str, blank: str
) -> None:
    file = tmp_path / "word"
    file.write_text(blank)
    monkeypatch.setenv(variable, blank if variable == WORD else str(file))
    cluster = load_cluster(ROOT / folder / "cluster.yaml")
    with pytest.raises(PassphraseError, match="empty: it would protect nothing"):
        ClusterStack(cluster, lambda: None, tmp_path / "no-engine", tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_a_file_does_not_replace_an_empty_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, horus: Cluster
) -> None:
    """The engine prefers the variable."""
    (tmp_path / "word").write_text("a good one")
    monkeypatch.setenv(FILE, str(tmp_path / "word"))
    monkeypatch.setenv(WORD, "")
    with pytest.raises(PassphraseError, match=f"{WORD} is empty"):
        ClusterStack(horus, lambda: None, tmp_path / "no-engine", tmp_path / "state")


def test_an_unsupported_secrets_provider_is_refused(tmp_path: Path, horus: Cluster) -> None:
    settings = tmp_path / "Pulumi.horus.yaml"
    settings.write_text("secretsprovider: base64\n")
    with pytest.raises(PassphraseError, match="secretsprovider base64 is not one"):
        ClusterStack(horus, lambda: None, tmp_path / "no-engine", tmp_path / "state", settings)


@pytest.mark.parametrize(
    "url",
    [
        "awskms://alias/menagerie?region=eu-west-1",
        "azurekeyvault://apes.vault.azure.net/keys/state",
        "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k",
        "hashivault://state",
    ],
)
@pytest.mark.parametrize("file", ["Pulumi.yaml", "Pulumi.horus.yaml"])
def test_a_key_of_a_kms_is_passed_on_as_written_and_no_passphrase_is_asked_for(
    tmp_path: Path, horus: Cluster, file: str, url: str
) -> None:
    (tmp_path / file).write_text(f"secretsprovider: {url}\n")
    chosen = encryption.choice(tmp_path / "Pulumi.horus.yaml", "s3://bucket")
    assert chosen == encryption.Choice(url, is_own=file == "Pulumi.horus.yaml")
    encryption.refuse_without_passphrase(horus, chosen.provider)
    variables = starting.environment(tmp_path / "state", provider=chosen.provider)
    assert {WORD, FILE} & set(variables) == set()
    assert not list(tmp_path.rglob("passphrase"))


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A key of a KMS, in the format of `secretsprovider`."""
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    credentials = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_REGION": "eu-west-1"}
    for name, value in {**credentials, "AWS_ENDPOINT_URL_KMS": url}.items():
        monkeypatch.setenv(name, value)
    key = boto3.client("kms", endpoint_url=url, region_name="eu-west-1").create_key()["KeyMetadata"]["KeyId"]
    yield f"awskms://{key}?region=eu-west-1"
    server.stop()


def test_a_kms_needs_no_passphrase_and_without_its_key_nothing_can_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, horus: Cluster, kms: str
) -> None:
    cli, settings, state = program("pulumi"), tmp_path / "Pulumi.horus.yaml", tmp_path / "state"
    settings.write_text(f"secretsprovider: {kms}\n")
    stack = ClusterStack(horus, lambda: pulumi.export("key", pulumi.Output.secret("of-an-etcd")), cli, state, settings)
    stack.up()
    stack.set_secret("vpn", "of-a-tunnel")
    assert not list(tmp_path.rglob("passphrase"))
    texts = [settings.read_text(), *(file.read_text() for file in state.rglob("stacks/**/horus.json"))]
    assert len(texts) == 2
    assert not any("of-an-etcd" in text or "of-a-tunnel" in text for text in texts)
    where = f"file://{state / 'pulumi'}?metadata=skip"
    other = ClusterStack(horus, lambda: None, cli, tmp_path / "elsewhere", settings, where)
    assert (other.outputs(), other.secret("vpn")) == ({"key": "of-an-etcd"}, "of-a-tunnel")
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", NOBODY)
    with pytest.raises(StackError, match="KMS: Decrypt"):
        other.outputs()
