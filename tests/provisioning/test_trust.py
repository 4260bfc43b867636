"""Files of pins and authorities, and the login: errors never repeat the content."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

import pytest

from cluster.errors import RefusedError
from operations import bmcs
from operations.provisioning.machines import machines
from operations.provisioning.trust import Login, Trust, parse_pins
from tests.provisioning.support import certificate, cluster

PIN = "ab" * 32


def test_pins_are_accepted_in_the_form_of_openssl_and_of_this_command() -> None:
    colons = ":".join(["AB"] * 32)
    text = f"# rack 1\n10.9.254.11 sha256:{PIN}\n\n10.9.254.12  {colons} # new board\n10.9.254.13 {PIN}\n"
    assert parse_pins(text, "p") == {IPv4Address(f"10.9.254.{n}"): PIN for n in (11, 12, 13)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"10.9.254.11 {PIN[:-2]}", "p:1: not an address and a SHA-256"),
        (f"\nbmc-1 {PIN}", "p:2: not an address and a SHA-256"),
        (f"10.9.254.11 {PIN}\n10.9.254.11 {PIN}", "p:2: 10.9.254.11 has a pin in an earlier line"),
    ],
)
def test_an_invalid_line_is_reported(text: str, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        parse_pins(text, "p")


@pytest.mark.parametrize("secret", ["", "root", "root:", ":calvin"])
def test_a_login_without_both_parts_is_refused(secret: str) -> None:
    with pytest.raises(
        RefusedError, match="isn't user:password; store it again: ./menagerie secret jaguar bmc$"
    ) as error:
        Login.parse(secret, "./menagerie secret jaguar bmc")
    assert "calvin" not in str(error.value)


def test_a_password_may_contain_colons_and_is_in_no_representation() -> None:
    login = Login.parse("root:a:b\n", "x")
    assert (login.user, login.password) == ("root", "a:b")
    assert "a:b" not in repr(login)


def test_the_files_are_next_to_the_spec(tmp_path: Path) -> None:
    settings = machines(cluster())[0].settings.bmc
    assert settings
    with pytest.raises(RefusedError, match=r"bmc-pins.txt can't be read \(there is no such file"):
        Trust.load(settings, tmp_path)
    (tmp_path / "bmc-pins.txt").write_text(f"10.9.254.11 {PIN}\n")
    assert Trust.load(settings, tmp_path).pins == {IPv4Address("10.9.254.11"): PIN}
    by_ca = settings.model_copy(update={"ca": "bmc-ca.pem", "pins": None})
    (tmp_path / "bmc-ca.pem").write_text("10.9.254.11")
    with pytest.raises(RefusedError, match="contains no PEM certificate"):
        Trust.load(by_ca, tmp_path)
    made = certificate(tmp_path, "bmc-ca")
    assert Trust.load(by_ca, tmp_path).ca == made.path


def test_a_missing_secret_is_reported_with_its_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bmc-pins.txt").write_text("")
    monkeypatch.setattr(bmcs, "secret_of", lambda *_: None)
    with pytest.raises(RefusedError, match=r"store it with: \./menagerie secret lynx bmc-sjc1"):
        bmcs.connections(cluster(), tmp_path, machines(cluster()))
