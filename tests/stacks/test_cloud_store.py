"""The programs by which hosts of the three clouds read their stores, and the boot program on top of them.

`tests.stacks.fake_stores` implements the other end.
"""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

import etcd.render
from cluster.files import JOIN_TOKEN
from components.control_plane import render as control_plane_render
from components.userdata import Payload, render
from stacks import certificates
from stacks.certificates import Request
from stacks.cloud_store import bundle_name
from tests.control_plane import csi_support
from tests.stacks.fake_stores import READER, Answer, Aws, Azure, Cloud, Gcp, moto, reply, serve
from tests.userdata.placed import boot

PROGRAM_BYTES = 5120
USER_DATA_BYTES = 13 * 1024
PAYLOAD = Payload('{"files": [{"path": "/etc/a", "text": "ä\\n"}]}\n')
SECRET = "-----BEGIN PRIVATE KEY-----\n\0ä\n"
NAMES = [
    *(secret.name for secret in control_plane_render.secrets(csi_support.cluster(csi_support.CLOUDS[0]))),
    *(secret.name for secret in etcd.render.secrets("events", "etcd-events-1")),
    PAYLOAD.name,
    JOIN_TOKEN,
    bundle_name("etcd-events-1"),
]
"""All kinds of names of a cluster and its store."""
READ = NAMES[:-1]
BUNDLE = bundle_name(READER)

BUSY = [
    (Answer(500, "oops"), "HTTP 500 oops"),
    (Answer(503, "<html>\nbusy"), "HTTP 503 <html> busy"),
    (Answer(200, '{"SecretString": "KEY', length=100), "IncompleteRead"),
]

Ask = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="module")
def moto_server() -> Iterator[None]:
    Aws.server = moto()
    yield
    Aws.server.stop()


@pytest.fixture
def aws(moto_server: None) -> Iterator[Aws]:
    urllib.request.urlopen("http://{}:{}/moto-api/reset".format(*Aws.server.get_host_and_port()), b"")
    cloud = Aws()
    stop = serve(cloud)
    yield cloud
    stop()


@pytest.fixture(params=["aws", "gcp", "azure"])
def cloud(request: pytest.FixtureRequest) -> Iterator[Cloud]:
    if request.param == "aws":
        yield request.getfixturevalue("aws")
        return
    fake = {"gcp": Gcp, "azure": Azure}[request.param]()
    stop = serve(fake)
    yield fake
    stop()


@pytest.fixture(params=[Aws, Gcp, Azure], ids=["aws", "gcp", "azure"])
def adapter(request: pytest.FixtureRequest):
    return request.param().in_production()


def placed(tmp_path: Path, cloud: Cloud) -> Path:
    program = tmp_path / "menagerie-secret"
    program.write_text(cloud.adapter().script().replace("/usr/bin/python3", sys.executable, 1))
    program.chmod(0o755)
    return program


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    def run(cloud: Cloud, *names: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([placed(tmp_path, cloud), *names], check=False, capture_output=True)

    return run


def error_lines(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    assert done.stdout == b""
    return done.stderr.decode().splitlines()


def test_a_host_reads_its_secrets_to_the_byte(cloud: Cloud, ask: Ask) -> None:
    cloud.hold({"etcd-main-ca.crt": SECRET, "b": "2", "c": "3"})
    done = ask(cloud, "etcd-main-ca.crt", "c")
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout) == {"etcd-main-ca.crt": SECRET, "c": "3"}


def test_all_secrets_use_one_connection_plus_one_to_the_metadata_service(cloud: Cloud, ask: Ask) -> None:
    cloud.hold(dict.fromkeys(READ, "x"))
    done = ask(cloud, *READ)
    assert (done.returncode, json.loads(done.stdout)) == (0, dict.fromkeys(READ, "x"))
    assert cloud.connections == 2


def test_all_missing_secrets_are_reported_in_one_run(cloud: Cloud, ask: Ask) -> None:
    cloud.hold({"own": "1"})
    done = ask(cloud, "sa.key", "own", PAYLOAD.name, "sa.pub")
    assert done.returncode == 1
    errors = error_lines(done)
    assert [line.split(": ")[1] for line in errors] == [PAYLOAD.name, "sa.key", "sa.pub"]
    assert all(re.search("(?i)not ?found|can't find", line) for line in errors)
    assert [f"in {BUNDLE}" in line for line in errors] == [False, True, True]


def test_a_denied_secret_is_reported_with_the_missing_permission(cloud: Cloud, ask: Ask) -> None:
    cloud.hold({"ca.key": "2", PAYLOAD.name: "p", JOIN_TOKEN: "t"})
    cloud.deny(BUNDLE)
    cloud.deny(PAYLOAD.name)
    done = ask(cloud, "ca.key", PAYLOAD.name, "sa.key", JOIN_TOKEN)
    assert done.returncode == 1
    errors = error_lines(done)
    assert [line.split(": ")[1] for line in errors] == [PAYLOAD.name, BUNDLE]
    assert all(cloud.PERMISSION in line for line in errors)


def test_the_bundle_is_not_read_if_nothing_in_it_is_requested(cloud: Cloud, ask: Ask) -> None:
    """A worker requests only a token at every attempt to join; its bundle may then be unavailable, or large."""
    cloud.hold({PAYLOAD.name: "p", JOIN_TOKEN: "t"})
    done = ask(cloud, JOIN_TOKEN, PAYLOAD.name)
    assert (done.returncode, json.loads(done.stdout)) == (0, {PAYLOAD.name: "p", JOIN_TOKEN: "t"})


@pytest.mark.parametrize("content", ["", '{"a": "KEY', "KEY"])
def test_a_damaged_bundle_is_named_but_not_shown(cloud: Cloud, ask: Ask, content: str) -> None:
    """Treated as a temporary failure of the store: a host that already has all its secrets continues with them."""
    cloud.keep({BUNDLE: content or " "})
    done = ask(cloud, "a")
    assert done.returncode == 69
    (line,) = error_lines(done)
    assert f"{BUNDLE} is damaged: " in line
    assert "KEY" not in line


def put(tmp_path: Path, cloud: Cloud, name: str, value: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [placed(tmp_path, cloud), "--put", name], check=False, capture_output=True, input=value.encode()
    )


def test_other_hosts_read_a_value_that_a_host_writes(cloud: Cloud, ask: Ask, tmp_path: Path) -> None:
    cloud.keep({JOIN_TOKEN: "none yet"})
    for value in ("abcdef.0123456789abcdef", "another", SECRET):
        done = put(tmp_path, cloud, JOIN_TOKEN, value)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert cloud.kept(JOIN_TOKEN) == value
        assert json.loads(ask(cloud, JOIN_TOKEN).stdout) == {JOIN_TOKEN: value}


def test_a_denied_write_reports_the_permission_and_not_the_value(cloud: Cloud, tmp_path: Path) -> None:
    cloud.keep({JOIN_TOKEN: "old"})
    cloud.deny(JOIN_TOKEN)
    done = put(tmp_path, cloud, JOIN_TOKEN, "TOKEN")
    assert done.returncode == 1
    (line,) = error_lines(done)
    assert line.startswith(f"127.0.0.1: {JOIN_TOKEN}: HTTP 4")
    assert cloud.WRITING in line
    assert "TOKEN" not in line
    assert cloud.kept(JOIN_TOKEN) == "old"


@pytest.mark.parametrize(("fault", "message"), BUSY)
def test_a_transient_write_failure_is_not_a_refusal(cloud: Cloud, tmp_path: Path, fault: Answer, message: str) -> None:
    cloud.store_fault = fault
    done = put(tmp_path, cloud, JOIN_TOKEN, "TOKEN")
    assert done.returncode == 69
    (line,) = error_lines(done)
    assert message in line


def test_a_throttled_write_is_not_a_refusal(cloud: Cloud, tmp_path: Path) -> None:
    cloud.store_fault = cloud.THROTTLED
    assert put(tmp_path, cloud, JOIN_TOKEN, "TOKEN").returncode == 69


def test_google_keeps_only_one_billed_version(tmp_path: Path) -> None:
    cloud = Gcp()
    stop = serve(cloud)
    for value in "abc":
        assert put(tmp_path, cloud, JOIN_TOKEN, value).returncode == 0
    (versions,) = cloud.versions.values()
    assert list(versions.values()) == ["DESTROYED", "DESTROYED", "ENABLED"]
    cloud.destroying = cloud.DENIED
    done = put(tmp_path, cloud, JOIN_TOKEN, "d")
    stop()
    assert (done.returncode, cloud.kept(JOIN_TOKEN)) == (0, "d")
    assert b"its version 3 stays" in done.stderr
    assert b"secretmanager.versions.destroy" in done.stderr


def test_a_throttled_read_can_be_retried(cloud: Cloud, ask: Ask) -> None:
    cloud.store_fault = cloud.THROTTLED
    done = ask(cloud, "a")
    assert (done.returncode, len(error_lines(done))) == (69, 1)


NOT_WHOLE = [
    (Answer(200, '{"SecretString": "KEY'), "Unterminated string"),
    (Answer(200, ""), "Expecting value"),
]


@pytest.mark.parametrize(
    ("part", "fault", "message"),
    [*(("metadata", *fault) for fault in BUSY), *(("store", *fault) for fault in BUSY + NOT_WHOLE)],
)
def test_a_transient_failure_is_not_a_refusal(cloud: Cloud, ask: Ask, part: str, fault: Answer, message: str) -> None:
    setattr(cloud, f"{part}_fault", fault)
    done = ask(cloud, "a")
    assert done.returncode == 69
    (line,) = error_lines(done)
    assert message in line
    assert "KEY" not in line


def test_a_slow_store_times_out(cloud: Cloud, tmp_path: Path) -> None:
    cloud.store_fault = Answer(200, "{}", after_s=5)
    program = placed(tmp_path, cloud)
    program.write_text(program.read_text().replace("timeout=5", "timeout=0.2"))
    done = subprocess.run([program, "a"], check=False, capture_output=True)
    assert (done.returncode, error_lines(done)) == (69, ["127.0.0.1: timed out"])


@pytest.mark.parametrize("part", ["url", "metadata"])
def test_a_server_that_is_down_differs_from_one_that_refuses(cloud: Cloud, ask: Ask, part: str) -> None:
    setattr(cloud, part, "http://127.0.0.1:1")
    done = ask(cloud, "a")
    assert (done.returncode, len(error_lines(done))) == (69, 1)
    assert b"refused" in done.stderr


def test_a_store_is_trusted_only_with_a_valid_certificate(
    cloud: Cloud, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.hold({"a": "1"})
    trusted, other = (certificates.new_authority(name) for name in ("trusted", "other"))
    (tmp_path / "trusted").write_text(trusted.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "trusted"))
    for authority, code in ((other, 69), (trusted, 0)):
        leaf = certificates.issue(authority, Request("store", addresses=("127.0.0.1",)))
        (tmp_path / "leaf").write_text(leaf.certificate + leaf.private_key)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(tmp_path / "leaf")
        stop = serve(cloud, tls)
        done = ask(cloud, "a")
        stop()
        assert done.returncode == code
        assert (b"CERTIFICATE_VERIFY_FAILED" in done.stderr) == bool(code)


def test_a_missing_identity_is_reported(cloud: Cloud, ask: Ask) -> None:
    cloud.metadata_fault = cloud.NO_IDENTITY
    done = ask(cloud, "a", "b")
    assert done.returncode == 1
    (line,) = error_lines(done)
    assert line.startswith("127.0.0.1: no identity: HTTP 4")


def test_an_expired_token_is_reported(cloud: Cloud, ask: Ask) -> None:
    cloud.expired = True
    done = ask(cloud, "a")
    assert done.returncode == 1
    assert re.search("Expired|invalid authentication", done.stderr.decode())


def test_a_signature_made_with_another_key_is_refused(aws: Aws, ask: Ask) -> None:
    aws.hold({"a": "1"})
    assert ask(aws, "a").returncode == 0
    aws.role = Credentials(aws.role.access_key, "another", aws.role.token)
    done = ask(aws, "a")
    assert done.returncode == 1
    assert b"InvalidSignatureException" in done.stderr


@pytest.mark.parametrize("ahead", [600, -600, 365 * 24 * 3600])
def test_a_clock_that_invalidates_signatures_is_reported(aws: Aws, ask: Ask, ahead: float) -> None:
    aws.hold({"a": "1"})
    aws.clock_ahead_s = ahead
    done = ask(aws, "a")
    assert done.returncode == 1
    seconds = re.search(r"this host's clock is ([+-]\d+) s off", done.stderr.decode())
    assert seconds
    assert abs(int(seconds[1]) + ahead) < 10


def test_a_role_that_cannot_be_assumed_is_reported(aws: Aws, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = reply(200, Code="AssumeRoleUnauthorizedAccess", Message="EC2 cannot assume the role r.")
    original = aws.of_metadata
    monkeypatch.setattr(
        aws, "of_metadata", lambda *request: refusal if request[1].endswith("-role") else original(*request)
    )
    done = ask(aws, "a")
    assert done.returncode == 1
    assert b"EC2 cannot assume the role r." in done.stderr


@pytest.mark.parametrize("status", [404, 410, 429])
def test_azure_metadata_can_be_retried_while_it_is_updated(ask: Ask, status: int) -> None:
    cloud = Azure(metadata_fault=reply(status, error="updating"))
    stop = serve(cloud)
    done = ask(cloud, "a")
    stop()
    assert done.returncode == 69


def test_a_host_boots_with_its_payload_and_its_secrets(
    tmp_path: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = tmp_path / "host" / "payload.sha256"
    reference.parent.mkdir()
    reference.write_text(f"{PAYLOAD.sha256}  {PAYLOAD.name}\n")
    monkeypatch.setattr(boot, "PAYLOAD", reference)
    monkeypatch.setattr(boot, "STORE", str(placed(tmp_path, cloud)))
    with pytest.raises(boot.Failure, match=PAYLOAD.name) as missing:
        boot.load_payload()
    assert not isinstance(missing.value, boot.StoreSilent)
    secrets = [name for name in READ if name != PAYLOAD.name]
    cloud.hold({PAYLOAD.name: PAYLOAD.packed()} | dict.fromkeys(secrets, SECRET))
    cloud.store_fault = cloud.THROTTLED
    with pytest.raises(boot.StoreSilent):
        boot.load_payload()
    assert list(reference.parent.iterdir()) == [reference]
    cloud.store_fault = None
    assert boot.load_payload() == json.loads(PAYLOAD.text)
    assert boot.ask_store(secrets) == dict.fromkeys(secrets, SECRET)


def test_the_program_is_small_and_user_data_fits_every_cloud_with_room_to_spare(adapter) -> None:
    assert len(adapter.script().encode()) <= PROGRAM_BYTES
    assert len(render(PAYLOAD, adapter, "etcd-events-1").encode()) <= USER_DATA_BYTES


def test_hosts_use_the_documented_addresses_and_no_placeholder_is_left(adapter) -> None:
    text = adapter.script()
    assert set(re.findall(r'"(https?://[^"]+)"', text)) == {adapter.url, "http://169.254.169.254"}
    assert adapter.url.startswith("https://")
    assert re.findall(r"\b(?:NAME|STORE|METADATA|BUNDLE)_[A-Z]+|CLIENT_ID|AUDIENCE", text) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_name_maps_to_the_store_and_back(adapter, name: str) -> None:
    stored = adapter.stored_name(name)
    assert adapter.plain_name(stored) == name
    # A name that ends like an ARN confuses Secrets Manager.
    assert not re.search("-.{6}$", stored) or not isinstance(adapter, type(Aws().in_production()))


@given(name=st.text("ab-.", min_size=1, max_size=8) | st.text("a0-._/A", min_size=1, max_size=140))
def test_stored_names_are_unique_and_allowed_by_the_cloud(name: str) -> None:
    allowed = {Aws: r"[\w/+=.@-]{1,512}", Gcp: r"[\w-]{1,255}", Azure: r"[a-zA-Z][0-9a-zA-Z-]{0,126}"}
    for cloud, pattern in allowed.items():
        adapter = cloud().in_production()
        try:
            stored = adapter.stored_name(name)
        except ValueError:
            assert re.search(r"[_A/]|--|-\.|\.\.|^[^a]|.{64}", name)
            continue
        assert adapter.plain_name(stored) == name
        assert re.fullmatch(pattern, stored, re.ASCII)
        if cloud is Azure:
            assert stored == stored.lower()


def test_names_of_two_clusters_differ() -> None:
    for store in (Aws().in_production(), Gcp().in_production()):
        assert replace(store, cluster="a").stored_name("b-c") != replace(store, cluster="a-b").stored_name("c")
