"""Reads people and teams from LDAP: all of them, or nothing.

ldap3 is pure Python, so nothing is compiled where the command runs. python-ldap and bonsai are distributed only as C source and
need a compiler and OpenLDAP's headers. ldap3's last release is from 2021, so TLS is left to Python's ssl module.
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
from controllers.tenancy.directory.model import Person, PersonState, Roster, Team, directory_error
from controllers.tenancy.directory.names import assign

_PAGED = "1.2.840.113556.1.4.319"
"""RFC 2696."""
_WHOLE_OF_TIMEOUT = 10
_SHOWN = 3
# Result codes (RFC 4511, 4.1.9), and what they mean to the reader of the message.
_SUCCESS, _WRONG_PASSWORD, _NO_SUCH_BASE = 0, 49, 32
_TRUNCATED = {
    3: "the server reached its time limit",
    4: "the server returns no more entries than its size limit",
    11: "the server reached a limit set by its administrator",
}

Password = Callable[[str], str]
"""Name of a secret -> the secret. Raises if it does not exist."""
After = Callable[[float, Callable[[], None]], threading.Timer]
"""Makes a timer that, once started, calls a function after so many seconds unless it is cancelled."""


@dataclass(frozen=True)
class _Entry:
    """An LDAP entry. dn: as the server writes it. values: attribute in lower case -> values."""

    dn: str
    values: Mapping[str, tuple[str, ...]]

    def all(self, *attributes: str) -> Iterator[str]:
        for attribute in attributes:
            yield from self.values.get(attribute.lower(), ())


class LdapDirectory:
    """A directory in LDAP. folder: of the spec. password: returns secrets. after: makes the timer that limits a whole read."""

    def __init__(
        self, cluster: str, settings: Tenancy, folder: Path, password: Password, after: After = threading.Timer
    ) -> None:
        if settings.directory.ldap is None:
            raise ValueError("the spec has no tenancy.directory.ldap")
        self._cluster = cluster
        self._ldap: Ldap = settings.directory.ldap
        self._settings, self._folder, self._password, self._after = settings, folder, password, after

    @property
    def name(self) -> str:
        """Return the URLs."""
        return ", ".join(self._ldap.urls)

    def read(self) -> Roster:
        """Read all people and teams. Errors: raises FailedError if the answer is incomplete or invalid."""
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
        """Connect to the first server that answers, and yield a way to search it."""
        connection = self._first(secret)
        ask = _Ask(connection, self._ldap, self.name)
        watchdog = self._after(ask.longest_s, lambda: _cut(connection))
        watchdog.daemon = True
        watchdog.start()
        try:
            yield ask
        except LDAPException as error:
            raise directory_error(self.name, [f"it stopped answering: {_why(error)}"]) from None
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
        raise directory_error(self.name, reasons)

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
        # Do not try another server: several attempts with a wrong password lock the account.
        reason = connection.result["description"]
        with suppress(LDAPException, OSError):
            connection.unbind()
        hint = ""
        if connection.result["result"] == _WRONG_PASSWORD and ldap.password:
            hint = f"; store the right password: ./menagerie secret {self._cluster} {ldap.password.secret}"
        raise directory_error(url, [f"it rejects the login of {ldap.bind_dn or 'an anonymous client'}: {reason}{hint}"])

    def _tls(self) -> _Tls:
        ca = self._folder / self._ldap.ca if self._ldap.ca else None
        try:
            if ca:
                read_bytes(ca)  # OpenSSL would block on a pipe, and read a device to its end
            return _Tls(ssl.create_default_context(cafile=ca))
        except UnreadableError as error:
            raise directory_error(self.name, [f"TEN-001: {error}"]) from None
        except (OSError, ssl.SSLError) as error:
            reason = error.strerror or str(error)
            raise directory_error(self.name, [f"TEN-001: {ca} can't be read as certificates: {reason}"]) from None

    def _roster(self, people: list[_Entry], gone: set[_Dn], teams: list[_Entry]) -> Roster:
        reasons: list[str] = []
        notices: list[str] = []
        by_id = _by_id(people, self._ldap.people.id, "people", reasons, notices)
        known = {
            id: Person(
                id,
                next(entry.all(self._ldap.people.full_name), ""),
                PersonState.LEFT if _normal(entry.dn) in gone else PersonState.ACTIVE,
            )
            for id, entry in by_id.items()
        }
        ids = {_normal(entry.dn): id for id, entry in by_id.items()}
        by_name: dict[str, Team] = {}
        for name, entry in _by_id(teams, self._ldap.teams.id, "teams", reasons, notices).items():
            unknown: list[str] = []
            members, owners = (
                tuple(sorted({*_ids_of(entry.all(*attributes), ids, known, unknown)}))
                for attributes in (self._ldap.teams.members, self._ldap.teams.owners)
            )
            by_name[name] = Team(name, members, owners)
            if unknown:
                more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
                notices.append(
                    f"team {name}: these members or owners are not among the people: {', '.join(unknown[:_SHOWN])}{more}"
                )
        roster = Roster(known, by_name, tuple(notices))
        reasons += [f"{each.code}: {each.message}; {each.hint}" for each in assign(roster.tenants(), self._settings)[1]]
        if reasons:
            raise directory_error(self.name, reasons)
        return roster


class _Tls(ldap3.Tls):  # type: ignore[misc]  # the library has no types
    """Python's own verification of certificates and names."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(validate=ssl.CERT_REQUIRED)
        self._context = context

    def wrap_socket(self, connection: ldap3.Connection, do_handshake: bool = False) -> None:
        connection.socket = self._context.wrap_socket(connection.socket, server_hostname=connection.server.host)


class _Ask:
    """Searches over one connection, page by page to the end."""

    def __init__(self, connection: ldap3.Connection, ldap: Ldap, name: str) -> None:
        self._connection, self._ldap, self._name = connection, ldap, name
        self.longest_s = _WHOLE_OF_TIMEOUT * ldap.timeout / 1000
        self._deadline = time.monotonic() + self.longest_s

    def __call__(self, base: str, filter_: str, attributes: tuple[str, ...]) -> Iterator[_Entry]:
        """Yield all entries below a base. Errors: raises FailedError if the server does not return all of them."""
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
                raise directory_error(self._name, [f"{_refused(result, base)}; a partial answer is not used"])
            if time.monotonic() > self._deadline:
                text = f"it did not return all of {base} within {self.longest_s:.0f} s"
                raise directory_error(self._name, [f"{text}; raise tenancy.directory.ldap.timeout"])
            for entry in self._connection.response or ():
                if entry["type"] == "searchResEntry":
                    yield self._entry(entry["dn"], entry["raw_attributes"])
            control = result.get("controls", {}).get(_PAGED)
            if control is None:
                raise directory_error(
                    self._name, [f"it does not page its answers, so that of {base} may be incomplete"]
                )
            cookie = control["value"]["cookie"]

    def _entry(self, dn: str, raw: Mapping[str, list[bytes]]) -> _Entry:
        values = {}
        for attribute, raw_values in raw.items():
            # Active Directory returns 1,500 values at a time, and names their range in the attribute.
            if ";range=" in attribute.lower():
                raise directory_error(
                    self._name, [f"it returned only some values of {attribute.partition(';')[0]} of {dn}"]
                )
            values[attribute.lower()] = tuple(value.decode(errors="replace") for value in raw_values)
        return _Entry(dn, values)


_Dn = tuple[tuple[str, str], ...]


def _normal(dn: str) -> _Dn:
    """Normalise a distinguished name as servers compare them: ignoring case, spaces and the way of escaping."""
    with suppress(LDAPException):
        return tuple((key.strip().lower(), _plain(value)) for key, value, _ in parse_dn(dn, strip=True))
    return ((dn, ""),)


def _plain(value: str) -> str:
    text = re.sub(r"\\([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), value)
    return re.sub(r"\\(.)", r"\1", text).lower()


def _ids_of(
    values: Iterator[str], ids: Mapping[_Dn, str], people: Mapping[str, Person], unknown: list[str]
) -> Iterator[str]:
    """Yield the ids of people that members' values name, by distinguished name or by id. Append other values to `unknown`."""
    for value in values:
        id = ids.get(_normal(value)) if "=" in value else value if value in people else None
        if id is None:
            unknown.append(value)
        else:
            yield id


def _by_id(
    entries: list[_Entry], attribute: str, what: str, reasons: list[str], notices: list[str]
) -> dict[str, _Entry]:
    by_id: dict[str, _Entry] = {}
    for entry in entries:
        ids = [value for value in entry.all(attribute) if value]
        if len(ids) != 1:
            number = "no" if not ids else "more than one"
            notices.append(f"{entry.dn} has {number} {attribute}, and is not counted among the {what}")
        elif ids[0] in by_id:
            reasons.append(f"{by_id[ids[0]].dn} and {entry.dn} have the same {attribute}: {ids[0]}")
        else:
            by_id[ids[0]] = entry
    return by_id


def _refused(result: Mapping[str, object], base: str) -> str:
    code = result["result"]
    if code == _NO_SUCH_BASE:
        return f"{base} does not exist, or bind_dn may not see it"
    why = _TRUNCATED.get(code) if isinstance(code, int) else None
    detail = f" ({result['message']})" if result.get("message") else ""
    return f"{base} is truncated: {why}{detail}" if why else f"{base}: {result['description']}{detail}"


def _why(error: LDAPException) -> str:
    """Return the innermost message of the library's nested, quoted exceptions."""
    text = re.sub(r"\s*\(_ssl\.c:\d+\).*", "", str(error).replace("\\", ""), flags=re.DOTALL)
    return re.split(r"(?:error|opening): ", text)[-1].strip(" ()'\",") or type(error).__name__


def _cut(connection: ldap3.Connection) -> None:
    """Abort any read in progress: a server that sends a byte now and then never reaches a receive time-out."""
    with suppress(OSError, AttributeError):
        connection.socket.shutdown(socket.SHUT_RDWR)
