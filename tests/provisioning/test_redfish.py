"""The Redfish client with a service that behaves like known BMCs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from operations.provisioning.bmc import Bmc, BootTarget
from operations.provisioning.redfish import BmcError, BmcErrorKind, Patience
from tests.provisioning.fake import MAC, RESET, STORE, SYSTEM, Service, collection, link, serving

SESSIONS = "/redfish/v1/SessionService/Sessions"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(tmp_path) as server:
        yield server


def test_a_session_is_created_used_and_ended(service: Service) -> None:
    with service.client() as redfish:
        report = Bmc(redfish, MAC).report()
    assert (report.model, report.serial, report.power, report.macs) == ("Maker R1", "S1", "Off", (MAC,))
    assert service.asked[1][3] == {"UserName": "menagerie", "Password": "se:cret"}
    assert service.asked[-1][:2] == ("DELETE", f"{SESSIONS}/7")
    assert [headers.get("X-Auth-Token") for _, _, headers, _ in service.asked[2:]] == ["t1"] * len(service.asked[2:])
    assert not any("Authorization" in headers for _, _, headers, _ in service.asked)


def test_without_sessions_every_request_but_the_first_has_the_login(service: Service) -> None:
    del service.things["/redfish/v1/"]["Links"]
    with service.client() as redfish:
        Bmc(redfish, MAC)
    sent = [headers.get("Authorization") for _, _, headers, _ in service.asked]
    assert sent[0] is None
    assert set(sent[1:]) == {"Basic bWVuYWdlcmllOnNlOmNyZXQ="}


def test_an_expired_session_is_created_again(service: Service) -> None:
    with service.client() as redfish:
        bmc = Bmc(redfish, MAC)
        service.token = "t2"
        assert bmc.is_on is False
    assert service.count("POST", SESSIONS) == 2


def test_a_wrong_password_is_tried_once_because_bmcs_lock_accounts(service: Service) -> None:
    with pytest.raises(BmcError, match="rejects user menagerie") as refused, service.client("menagerie:wrong"):
        pass
    assert str(refused.value).endswith(f"store them again: {STORE}")
    assert refused.value.kind is BmcErrorKind.LOGIN
    assert service.count("POST", SESSIONS) == 1
    assert "wrong" not in str(refused.value)


@pytest.mark.parametrize("status", [503, 429])
def test_a_request_to_a_busy_bmc_is_retried_even_if_it_is_not_idempotent(service: Service, status: int) -> None:
    busy = (status, {"Retry-After": "0"}, {"error": {"message": "starting"}})
    service.ahead = {("GET", SYSTEM): [busy], ("POST", RESET): [busy]}
    with service.client() as redfish:
        Bmc(redfish, MAC).turn(on=True)
    assert service.count("POST", RESET) == 2
    assert [body for method, path, _, body in service.asked if path == RESET] == [{"ResetType": "On"}] * 2


def test_a_bmc_that_stays_busy_fails_with_its_own_message(service: Service) -> None:
    said = {"error": {"message": "general", "@Message.ExtendedInfo": [{"Message": "The service is starting."}]}}
    service.ahead = {("GET", SYSTEM): [(503, {}, said)] * 9}
    busy = pytest.raises(BmcError, match="with 503: The service is starting., 3 times")
    with busy as error, service.client() as redfish:
        Bmc(redfish, MAC).report()
    assert error.value.kind is BmcErrorKind.BUSY
    assert service.count("GET", SYSTEM) == 3


def test_an_action_without_a_response_is_not_retried_and_a_read_is(service: Service) -> None:
    silent = (0, {}, None)
    service.ahead = {("GET", SYSTEM): [silent]}
    with service.client(read_s=0.3) as redfish:
        bmc = Bmc(redfish, MAC)
        assert bmc.is_on is False
        service.ahead = {("POST", RESET): [silent]}
        with pytest.raises(BmcError, match="does not respond") as error:
            bmc.turn(on=True)
    assert error.value.kind is BmcErrorKind.UNREACHABLE
    assert service.count("POST", RESET) == 1


def test_a_bmc_that_says_to_wait_an_hour_does_not_hold_the_run_for_it() -> None:
    assert Patience().retry(repeatable=True).retry_after_max == 30


def test_the_boot_target_is_set_with_the_mode_and_read_back(service: Service) -> None:
    with service.client() as redfish:
        Bmc(redfish, MAC).boot_once(BootTarget.NETWORK)
    said = next(body for method, _, _, body in service.asked if method == "PATCH")
    assert said == {
        "Boot": {
            "BootSourceOverrideEnabled": "Once",
            "BootSourceOverrideTarget": "Pxe",
            "BootSourceOverrideMode": "UEFI",
        }
    }


def test_a_bmc_that_does_not_keep_the_boot_target_is_reported(service: Service) -> None:
    service.ahead = {("PATCH", SYSTEM): [(204, {}, None)]}
    with pytest.raises(BmcError, match="did not keep the setting"), service.client() as redfish:
        Bmc(redfish, MAC).boot_once(BootTarget.NETWORK)


def test_a_bmc_that_requires_the_version_gets_it(service: Service) -> None:
    service.ahead = {
        ("PATCH", SYSTEM): [(412, {}, {})],
        ("GET", SYSTEM): [(200, {}, service.things[SYSTEM]), (200, {"ETag": 'W/"5"'}, {})],
    }
    with service.client() as redfish:
        Bmc(redfish, MAC).boot_once(BootTarget.NETWORK)
    again = [headers for method, _, headers, _ in service.asked if method == "PATCH"][1]
    assert again["If-Match"] == 'W/"5"'


def test_a_remaining_boot_override_is_reset_and_a_used_one_is_not(service: Service) -> None:
    with service.client() as redfish:
        bmc = Bmc(redfish, MAC)
        bmc.boot_from_disk()
        assert service.count("PATCH", SYSTEM) == 0
        bmc.boot_once(BootTarget.NETWORK)
        bmc.boot_from_disk()
    assert service.things[SYSTEM]["Boot"]["BootSourceOverrideTarget"] == "Hdd"


def test_cards_that_are_listed_with_the_chassis_only_are_found(service: Service) -> None:
    del service.things[SYSTEM]["EthernetInterfaces"]
    chassis = "/redfish/v1/Chassis/1"
    service.things |= {
        chassis: {"NetworkAdapters": link(f"{chassis}/NetworkAdapters")},
        f"{chassis}/NetworkAdapters": collection(f"{chassis}/NetworkAdapters/1"),
        f"{chassis}/NetworkAdapters/1": {"NetworkDeviceFunctions": link(f"{chassis}/functions")},
        f"{chassis}/functions": {"Members": [], "Members@odata.nextLink": f"{chassis}/functions?page=2"},
        f"{chassis}/functions?page=2": collection(f"{chassis}/functions/1"),
        f"{chassis}/functions/1": {"Ethernet": {"PermanentMACAddress": MAC, "MACAddress": None}},
    }
    with service.client() as redfish:
        assert Bmc(redfish, MAC).report().macs == (MAC,)


def test_the_machine_is_found_by_its_mac_where_a_bmc_serves_several(service: Service) -> None:
    other = "/redfish/v1/Systems/0"
    service.things["/redfish/v1/Systems"] = collection(other, SYSTEM)
    service.things[other] = {"Model": "other"}
    with service.client() as redfish:
        assert Bmc(redfish, MAC).report().model == "Maker R1"
        with pytest.raises(BmcError, match="has 2 machines, none with the MAC b8:59:9f:10:00:09"):
            Bmc(redfish, "b8:59:9f:10:00:09")


def test_virtual_media_of_the_manager_are_used_where_the_machine_has_none(service: Service) -> None:
    drive = "/redfish/v1/Managers/1/VirtualMedia/2"
    service.things |= {
        "/redfish/v1/Managers/1": {"VirtualMedia": link("/redfish/v1/Managers/1/VirtualMedia")},
        "/redfish/v1/Managers/1/VirtualMedia": collection(drive),
        drive: {
            "MediaTypes": ["CD", "DVD"],
            "Inserted": True,
            "Image": "http://10.0.0.1/old.iso",
            "Actions": {
                "#VirtualMedia.InsertMedia": {"target": f"{drive}/insert"},
                "#VirtualMedia.EjectMedia": {"target": f"{drive}/eject"},
            },
        },
    }
    with service.client() as redfish:
        Bmc(redfish, MAC).insert("http://10.0.0.1/new.iso")
    called = [path for method, path, _, _ in service.asked if method == "POST" and path != SESSIONS]
    assert called == [f"{drive}/eject", f"{drive}/insert"]


def _no_reset(things: dict[str, Any]) -> None:
    del things[SYSTEM]["Actions"]


def _no_network(things: dict[str, Any]) -> None:
    things[SYSTEM]["Boot"]["BootSourceOverrideTarget@Redfish.AllowableValues"] = ["Hdd"]


@pytest.mark.parametrize(
    ("change", "ask", "text"),
    [
        (_no_reset, lambda bmc: bmc.turn(on=True), "lacks the action Reset with On or ForceOn"),
        (_no_network, lambda bmc: bmc.boot_once(BootTarget.NETWORK), "lacks booting from Pxe"),
        (lambda _: None, lambda bmc: bmc.insert("http://10.0.0.1/x.iso"), "lacks a virtual CD drive"),
    ],
)
def test_what_a_firmware_lacks_is_named(service: Service, change: Any, ask: Any, text: str) -> None:
    change(service.things)
    with pytest.raises(BmcError, match=text) as error, service.client() as redfish:
        ask(Bmc(redfish, MAC))
    assert error.value.kind is BmcErrorKind.MISSING


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        ((200, {}, "<html>"), BmcErrorKind.FAULT, "isn't a JSON object; is it a Redfish service?"),
        ((200, {}, []), BmcErrorKind.FAULT, "isn't a JSON object"),
        ((403, {}, {}), BmcErrorKind.LOGIN, "user menagerie has no permission"),
        (
            (404, {}, {"error": {"message": "none"}}),
            BmcErrorKind.MISSING,
            "with 404: none; its firmware may be too old",
        ),
        ((302, {"Location": "https://127.0.0.1/"}, {}), BmcErrorKind.FAULT, "with 302"),
        ((500, {}, "oops"), BmcErrorKind.FAULT, "with 500"),
    ],
)
def test_an_invalid_response_is_reported_with_its_path(
    service: Service, answer: Any, kind: BmcErrorKind, text: str
) -> None:
    service.ahead = {("GET", "/redfish/v1/Systems"): [answer]}
    with pytest.raises(BmcError, match=text.replace("?", r"\?")) as error, service.client() as redfish:
        Bmc(redfish, MAC)
    assert error.value.kind is kind


def test_a_path_to_another_host_is_not_followed(service: Service) -> None:
    service.things["/redfish/v1/Systems"] = collection("https://127.0.0.1:9/redfish/v1/Systems/1")
    with pytest.raises(BmcError, match="isn't a path on the BMC"), service.client() as redfish:
        Bmc(redfish, MAC).report()


def test_nothing_is_sent_to_a_bmc_with_another_certificate(service: Service) -> None:
    shown, service.pin = service.pin, "ab" * 32
    began = time.monotonic()
    with pytest.raises(BmcError, match=f"it presents sha256:{shown}; nothing was sent") as error, service.client():
        pass
    assert error.value.kind is BmcErrorKind.CERTIFICATE
    assert service.asked == []
    assert time.monotonic() - began < 5
