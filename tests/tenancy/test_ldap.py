"""LDAP with a real slapd: who is read, and all ways in which an answer can be incomplete."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import FailedError
from cluster.tenancy import Tenancy
from controllers.tenancy.directory import PersonState
from controllers.tenancy.directory.ldap import After, LdapDirectory
from tests.ports import free_port
from tests.tenancy.slapd import BASE, PASSWORD, READER, Slapd, between, group, person, posix, running

MANY = 1234
ENTRIES = (
    person("ana", employeeType="staff")
    + person("bo", employeeType="left")
    + person("J.Doe")
    + "".join(person(f"p{n}") for n in range(MANY - 3))
    + group("robotics", ["ana", "bo", "J.Doe"], ["ana"])
    # As written by hand: different case and spaces.
    + group("vision", ["ANA"], where="OU=People, DC=example,  dc=org")
    + posix("ops", ["ana", "p1", "nobody"])
    + group("everybody", [f"p{n}" for n in range(MANY - 3)])
)


@pytest.fixture(scope="module")
def slapd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    with running(tmp_path_factory.mktemp("slapd"), ENTRIES) as server:
        yield server


def directory(
    url: str,
    ca: Path | None,
    password: Callable[[str], str] | None = None,
    after: After = threading.Timer,
    **changes: Any,
) -> LdapDirectory:
    """Return a directory like that of a spec, with some keys changed."""
    ldap = {
        "urls": [url],
        "ca": str(ca) if ca else None,
        "bind_dn": READER,
        "password": {"secret": "ldap"},
        "timeout": "5s",
        "people": {"base": f"ou=people,{BASE}"},
        "teams": {"base": f"ou=teams,{BASE}"},
        **changes,
    }
    settings = Tenancy.model_validate({"directory": {"ldap": ldap}})
    return LdapDirectory("lab", settings, Path("/"), password or (lambda name: {"ldap": PASSWORD}[name]), after)


def refused(directory_: LdapDirectory) -> str:
    with pytest.raises(FailedError) as error:
        directory_.read()
    return str(error.value)


def test_more_than_a_thousand_people_are_read_page_by_page(slapd: Slapd) -> None:
    roster = directory(slapd.url, slapd.ca, page_size=100).read()
    assert len(roster.people) == MANY
    assert roster.people["J.Doe"].full_name == "J.Doe"
    assert roster.teams["robotics"].members == ("J.Doe", "ana", "bo")
    assert (roster.teams["robotics"].owners, roster.teams["vision"].members) == (("ana",), ("ana",))
    assert roster.teams["ops"].members == ("ana", "p1")
    assert len(roster.teams["everybody"].members) == MANY - 3
    assert roster.notices == ("team ops: these members or owners are not among the people: nobody",)
    assert roster == directory(slapd.url, slapd.ca, page_size=1000).read()


def test_people_who_match_the_filter_of_leavers_have_left(slapd: Slapd) -> None:
    people = {"base": f"ou=people,{BASE}", "left": "(employeeType=left)"}
    roster = directory(slapd.url, slapd.ca, people=people).read()
    assert [id for id, each in roster.people.items() if each.state is PersonState.LEFT] == ["bo"]
    assert roster.active == roster.people.keys() - {"bo"}


def test_other_attributes_and_filters_are_settings(slapd: Slapd) -> None:
    people = {"base": f"ou=people,{BASE}", "filter": "(uid=ana)", "id": "cn", "full_name": "uid"}
    teams = {"base": f"ou=teams,{BASE}", "filter": "(objectClass=posixGroup)", "members": ["memberUid"]}
    roster = directory(slapd.url, slapd.ca, people=people, teams=teams).read()
    assert (list(roster.people), roster.people["Ana"].full_name, list(roster.teams)) == (["Ana"], "ana", ["ops"])


def test_tls_can_start_on_the_plain_port(slapd: Slapd) -> None:
    assert len(directory(slapd.plain, slapd.ca, start_tls=True).read().people) == MANY


def test_the_plain_port_is_used_if_allowed(slapd: Slapd) -> None:
    assert len(directory(slapd.plain, None, allow_plaintext=True).read().people) == MANY


def test_a_server_with_a_certificate_of_another_ca_is_rejected(slapd: Slapd) -> None:
    for url, more in ((slapd.url, {}), (slapd.plain, {"start_tls": True})):
        assert "certificate verify failed" in refused(directory(url, None, **more))


def test_a_certificate_for_another_name_is_rejected(slapd: Slapd) -> None:
    for url, more in ((slapd.url, {}), (slapd.plain, {"start_tls": True})):
        message = refused(directory(url.replace("127.0.0.1", "localhost"), slapd.ca, **more))
        assert "Hostname mismatch, certificate is not valid for 'localhost'" in message


def test_an_unreadable_ca_is_reported(slapd: Slapd, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    os.mkfifo(tmp_path / "pipe.pem")
    for name in ("none.pem", "empty.pem", "pipe.pem"):
        assert f"TEN-001: {tmp_path / name} can't be read" in refused(directory(slapd.url, tmp_path / name))


def test_a_wrong_password_is_reported_without_showing_it(slapd: Slapd) -> None:
    message = refused(directory(slapd.url, slapd.ca, lambda _: "guessed"))
    assert (
        f"it rejects the login of {READER}: invalidCredentials; store the right password: ./menagerie secret lab ldap"
        in message
    )
    assert "guessed" not in message


def test_a_client_without_read_access_gets_no_empty_directory(slapd: Slapd) -> None:
    message = refused(directory(slapd.url, slapd.ca, bind_dn=None, password=None))
    assert f"ou=people,{BASE} does not exist, or bind_dn may not see it" in message


def test_a_wrong_base_is_reported(slapd: Slapd) -> None:
    message = refused(directory(slapd.url, slapd.ca, teams={"base": f"ou=groups,{BASE}"}))
    assert f"ou=groups,{BASE} does not exist" in message


def test_a_size_limit_of_the_server_is_a_truncated_answer(tmp_path: Path) -> None:
    with running(tmp_path, ENTRIES, "sizelimit 500") as small:
        message = refused(directory(small.url, small.ca, page_size=100))
    assert f"ou=people,{BASE} is truncated: the server returns no more entries than its size limit" in message
    assert "a partial answer is not used" in message


def test_a_server_that_is_down_is_reported_and_the_next_one_tried(slapd: Slapd) -> None:
    nobody = f"ldaps://127.0.0.1:{free_port()}"
    assert f"{nobody} does not answer: " in refused(directory(nobody, slapd.ca))
    assert "Connection refused" in refused(directory(nobody, slapd.ca))
    assert len(directory(nobody, slapd.ca, urls=[nobody, slapd.url]).read().people) == MANY


@pytest.mark.timeout(60)
def test_a_server_that_accepts_connections_but_never_answers_is_given_up(slapd: Slapd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for url, more in ((f"ldaps://127.0.0.1:{port}", {}), (f"ldap://127.0.0.1:{port}", {"allow_plaintext": True})):
            assert f"{url} does not answer" in refused(directory(url, slapd.ca, timeout="1s", **more))


class Drips:
    """Counts the bytes that a server sends one by one, and serves as the reader's clock: its timers fire after `MOST` bytes."""

    MOST = 50

    def __init__(self) -> None:
        self.bytes = 0
        self.limits_s: list[float] = []
        self.over = threading.Event()

    def passed(self) -> None:
        self.bytes += 1
        if self.limits_s and self.bytes > self.MOST:
            self.over.set()

    def after(self, seconds: float, call: Callable[[], None]) -> threading.Timer:
        self.limits_s.append(seconds)

        def when_over() -> None:
            self.over.wait()
            call()

        return threading.Timer(0, when_over)


@pytest.mark.timeout(60)
def test_a_server_that_sends_single_bytes_is_given_up_after_ten_times_the_timeout(
    slapd: Slapd,
) -> None:
    """No single answer takes long enough for its own time limit to end the read."""
    drips = Drips()
    with between(slapd.plain_port, dripped=drips.passed) as port:
        url = f"ldap://127.0.0.1:{port}"
        message = refused(directory(url, None, after=drips.after, timeout="30s", allow_plaintext=True))
        assert "it stopped answering" in message
        assert drips.limits_s == [300.0]
        assert drips.over.is_set()


@pytest.mark.parametrize("after", [20_000, 100_000])
def test_a_connection_cut_between_pages_gives_no_partial_roster(slapd: Slapd, after: int) -> None:
    with between(slapd.plain_port, cut_after=after) as port:
        url = f"ldap://127.0.0.1:{port}"
        message = refused(directory(url, None, page_size=100, allow_plaintext=True))
    assert "it stopped answering" in message


def test_all_problems_with_people_are_reported_at_once(tmp_path: Path) -> None:
    twin = person("kim").replace("ou=people", "ou=twins,ou=people")
    twins = f"\ndn: ou=twins,ou=people,{BASE}\nobjectClass: organizationalUnit\nou: twins\n"
    entries = person("kim") + twins + twin + person("j.doe") + person("j-doe") + person("a:b")
    with running(tmp_path, entries) as odd:
        message = refused(directory(odd.url, odd.ca))
    assert f"uid=kim,ou=people,{BASE} and uid=kim,ou=twins,ou=people,{BASE} have the same uid: kim" in message
    assert "TEN-011: person j-doe and person j.doe would share the namespace user-j-doe" in message
    assert "TEN-010: person a:b is not a valid user name" in message
