"""People and teams from LDAP: all of them, or nothing.

ldap3 is pure Python, so nothing is compiled where the command runs: python-ldap and bonsai come as source in C alone, and
want a compiler and OpenLDAP's headers. Its last release is of 2021, so TLS is left to Python's own ssl.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import ldap3
from ldap3.core.exceptions import LDAPException
from ldap3.utils.dn import parse_dn

from cluster.reading import UnreadableError, read_bytes
from cluster.tenancy import Ldap, Tenancy
from controllers.tenancy.directory.model import Person, Roster, State, Team, unbelieved
from controllers.tenancy.directory.names import assign

_PAGED = "1.2.840.113556.1.4.319"
"""RFC 2696."""
_WHOLE_OF_TIMEOUT = 10
_SHOWN = 3
# RFC 4511, 4.1.9, and what each means to whoever reads the message.
_SUCCESS, _WRONG_PASSWORD, _NO_SUCH_BASE = 0, 49, 32
_TRUNCATED = {
    3: "it gave up after its time limit",
    4: "it gives no more entries than its size limit",
    11: "it gives no more than its administrator allows",
}

Password = Callable[[str], str]
"""Name of a secret -> the secret. Raises where there is none."""
After = Callable[[float, Callable[[], None]], threading.Timer]
"""A timer that calls something after that many seconds, when it is started and not cancelled before."""


@dataclass(frozen=True)
class _Entry:
    """dn: as the server writes it. values: attribute in lower case -> values."""

    dn: str
    values: Mapping[str, tuple[str, ...]]

    def all(self, *attributes: str) -> Iterator[str]:
        for attribute in attributes:
            yield from self.values.get(attribute.lower(), ())


class LdapDirectory:
    """A directory that speaks LDAP. folder: where the spec is; password: knows secrets; after: limits the whole of a reading."""

    def __init__(self, settings: Tenancy, folder: Path, password: Password, after: After = threading.Timer) -> None:
        if settings.directory.ldap is None:
            raise ValueError("the spec names no LDAP")
        self._ldap: Ldap = settings.directory.ldap
        self._settings, self._folder, self._password, self._after = settings, folder, password, after

    @property
    def name(self) -> str:
        """The URLs."""
        return ", ".join(self._ldap.urls)

    def read(self) -> Roster:
        """Everybody. FailedError where not all of it was heard, or it can't be."""
        ldap = self._ldap
        secret = self._password(ldap.password.secret) if ldap.password else ""
        with self._connected(secret) as ask:
            people = list(ask(ldap.people.base, ldap.people.filter, (ldap.people.id, ldap.people.full_name)))
            left = ldap.people.left
            gone = ask(ldap.people.base, f"(&{ldap.people.filter}{left})", (ldap.people.id,)) if left else ()
            gone_dns = {_normal(entry.dn) for entry in gone}
            attributes = (ldap.teams.id, *ldap.teams.members, *ldap.teams.owners)
            teams = list(ask(ldap.teams.base, ldap.teams.filter, attributes))
        return self._roster(people, gone_dns, teams)

    @contextmanager
    def _connected(self, secret: str) -> Iterator[_Ask]:
        """How to ask the first server that answers, for the length of a block."""
        connection = self._first(secret)
        ask = _Ask(connection, self._ldap, self.name)
        watchdog = self._after(ask.longest_s, lambda: _cut(connection))
        watchdog.daemon = True
        watchdog.start()
        try:
            yield ask
        except LDAPException as error:
            raise unbelieved(self.name, [f"it stopped answering: {_why(error)}"]) from None
        finally:
            watchdog.cancel()
            with suppress(LDAPException, OSError):
                connection.unbind()

    def _first(self, secret: str) -> ldap3.Connection:
        reasons = []
        for url in self._ldap.urls:
            try:
                return self._login(url, secret)
            except LDAPException as error:
                reasons.append(f"{url} does not answer: {_why(error)}")
        raise unbelieved(self.name, reasons)

    def _login(self, url: str, secret: str) -> ldap3.Connection:
        ldap = self._ldap
        timeout_s = max(ldap.timeout // 1000, 1)
        server = ldap3.Server(url, get_info=ldap3.NONE, connect_timeout=timeout_s, tls=self._tls())
        connection = ldap3.Connection(
            server,
            ldap.bind_dn,
            secret or None,
            read_only=True,
            check_names=False,
            auto_referrals=False,
            receive_timeout=timeout_s,
        )
        connection.open(read_server_info=False)
        if ldap.start_tls and not url.startswith("ldaps:"):
            connection.start_tls(read_server_info=False)
        if connection.bind(read_server_info=False):
            return connection
        # Not asked of another server too: a wrong password locks an account after a few.
        said = connection.result["description"]
        with suppress(LDAPException, OSError):
            connection.unbind()
        hint = ""
        if connection.result["result"] == _WRONG_PASSWORD and ldap.password:
            hint = f"; store the right password with ./menagerie secret CLUSTER {ldap.password.secret}"
        raise unbelieved(url, [f"it does not let {ldap.bind_dn or 'nobody'} in: {said}{hint}"])

    def _tls(self) -> _Tls:
        ca = self._folder / self._ldap.ca if self._ldap.ca else None
        try:
            if ca:
                read_bytes(ca)  # OpenSSL would wait for a pipe, and read a device to its end
            return _Tls(ssl.create_default_context(cafile=ca))
        except UnreadableError as error:
            raise unbelieved(self.name, [f"TEN-001: {error}"]) from None
        except (OSError, ssl.SSLError) as error:
            reason = error.strerror or str(error)
            raise unbelieved(self.name, [f"TEN-001: {ca} can't be read as certificates: {reason}"]) from None

    def _roster(self, people: list[_Entry], gone: set[_Dn], teams: list[_Entry]) -> Roster:
        reasons: list[str] = []
        notices: list[str] = []
        by_id = _by_id(people, self._ldap.people.id, "people", reasons, notices)
        known = {
            id: Person(
                id,
                next(entry.all(self._ldap.people.full_name), ""),
                State.LEFT if _normal(entry.dn) in gone else State.ACTIVE,
            )
            for id, entry in by_id.items()
        }
        ids = {_normal(entry.dn): id for id, entry in by_id.items()}
        found: dict[str, Team] = {}
        for name, entry in _by_id(teams, self._ldap.teams.id, "teams", reasons, notices).items():
            strangers: list[str] = []
            members, owners = (
                tuple(sorted({*_meant(entry.all(*attributes), ids, known, strangers)}))
                for attributes in (self._ldap.teams.members, self._ldap.teams.owners)
            )
            found[name] = Team(name, members, owners)
            if strangers:
                more = f" and {len(strangers) - _SHOWN} more" if len(strangers) > _SHOWN else ""
                notices.append(f"team {name}: not among people: {', '.join(strangers[:_SHOWN])}{more}")
        roster = Roster(known, found, tuple(notices))
        reasons += [f"{each.code}: {each.message}; {each.hint}" for each in assign(roster.tenants(), self._settings)[1]]
        if reasons:
            raise unbelieved(self.name, reasons)
        return roster


class _Tls(ldap3.Tls):  # type: ignore[misc]  # the library has no types
    """Python's own verification of certificates and names."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(validate=ssl.CERT_REQUIRED)
        self._context = context

    def wrap_socket(self, connection: ldap3.Connection, do_handshake: bool = False) -> None:
        connection.socket = self._context.wrap_socket(connection.socket, server_hostname=connection.server.host)


class _Ask:
    """Searches of one connection, page by page to the end."""

    def __init__(self, connection: ldap3.Connection, ldap: Ldap, name: str) -> None:
        self._connection, self._ldap, self._name = connection, ldap, name
        self.longest_s = _WHOLE_OF_TIMEOUT * ldap.timeout / 1000
        self._deadline = time.monotonic() + self.longest_s

    def __call__(self, base: str, filter_: str, attributes: tuple[str, ...]) -> Iterator[_Entry]:
        """All entries below a base. FailedError where the server did not give all."""
        cookie: bytes | None = None
        while cookie != b"":
            self._connection.search(
                base,
                filter_,
                attributes=list(dict.fromkeys(attributes)),
                paged_size=self._ldap.page_size,
                paged_cookie=cookie,
                paged_criticality=True,
                time_limit=max(self._ldap.timeout // 1000, 1),
            )
            result = self._connection.result
            if result["result"] != _SUCCESS:
                raise unbelieved(self._name, [f"{_refused(result, base)}; nothing is believed of a part"])
            if time.monotonic() > self._deadline:
                text = f"it did not give all of {base} within {self.longest_s:.0f} s"
                raise unbelieved(self._name, [f"{text}; raise tenancy.directory.ldap.timeout"])
            for given in self._connection.response or ():
                if given["type"] == "searchResEntry":
                    yield self._entry(given["dn"], given["raw_attributes"])
            control = result.get("controls", {}).get(_PAGED)
            if control is None:
                raise unbelieved(self._name, [f"it does not page its answers, so {base} may be a part"])
            cookie = control["value"]["cookie"]

    def _entry(self, dn: str, raw: Mapping[str, list[bytes]]) -> _Entry:
        values = {}
        for attribute, given in raw.items():
            # Active Directory gives 1,500 values at a time, and says which.
            if ";range=" in attribute.lower():
                raise unbelieved(self._name, [f"it gave a part of {attribute.partition(';')[0]} of {dn}"])
            values[attribute.lower()] = tuple(value.decode(errors="replace") for value in given)
        return _Entry(dn, values)


_Dn = tuple[tuple[str, str], ...]


def _normal(dn: str) -> _Dn:
    """A distinguished name as servers compare them: without regard to case, spaces and ways to escape."""
    with suppress(LDAPException):
        return tuple((key.strip().lower(), _plain(value)) for key, value, _ in parse_dn(dn, strip=True))
    return ((dn, ""),)


def _plain(value: str) -> str:
    text = re.sub(r"\\([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), value)
    return re.sub(r"\\(.)", r"\1", text).lower()


def _meant(
    values: Iterator[str], ids: Mapping[_Dn, str], people: Mapping[str, Person], lost: list[str]
) -> Iterator[str]:
    """Ids of whom values of members name, by distinguished name or by id. Others go to `lost`."""
    for value in values:
        id = ids.get(_normal(value)) if "=" in value else value if value in people else None
        if id is None:
            lost.append(value)
        else:
            yield id


def _by_id(
    entries: list[_Entry], attribute: str, what: str, reasons: list[str], notices: list[str]
) -> dict[str, _Entry]:
    found: dict[str, _Entry] = {}
    for entry in entries:
        given = [value for value in entry.all(attribute) if value]
        if len(given) != 1:
            has = "no" if not given else "more than one"
            notices.append(f"{entry.dn} has {has} {attribute}, and is passed over as one of the {what}")
        elif given[0] in found:
            reasons.append(f"{found[given[0]].dn} and {entry.dn} have one {attribute}: {given[0]}")
        else:
            found[given[0]] = entry
    return found


def _refused(result: Mapping[str, object], base: str) -> str:
    code = result["result"]
    if code == _NO_SUCH_BASE:
        return f"{base} is not there, or not to be seen by bind_dn"
    why = _TRUNCATED.get(code) if isinstance(code, int) else None
    said = f" ({result['message']})" if result.get("message") else ""
    return f"{base} is truncated: {why}{said}" if why else f"{base}: {result['description']}{said}"


def _why(error: LDAPException) -> str:
    """What lies innermost in the library's nest of quoted exceptions."""
    text = re.sub(r"\s*\(_ssl\.c:\d+\).*", "", str(error).replace("\\", ""), flags=re.DOTALL)
    return re.split(r"(?:error|opening): ", text)[-1].strip(" ()'\",") or type(error).__name__


def _cut(connection: ldap3.Connection) -> None:
    """End whatever is waited for: a server that gives a byte now and then never runs into a time limit."""
    with suppress(OSError, AttributeError):
        connection.socket.shutdown(socket.SHUT_RDWR)
