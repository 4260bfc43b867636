"""strongSwan's settings of an edge router: swanctl.conf(5), strongswan.conf(5).

Both ends of a tunnel take everything in and leave it to routes what goes in: a tunnel is an interface. Proposals are what
`stacks` gives the gateways, one a tunnel: Google advises so, for a gateway that may choose may choose otherwise the next
time ("Supported IKE ciphers").
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence

from network.gateway import Line, certificate_name

FOLDER = "/etc/swanctl"
IKE = "aes256gcm16-prfsha384-ecp384"
ESP = {"AES-256-GCM-16": "aes256gcm16-ecp384"}
"""`Tunnel.esp` -> what strongSwan calls it, with a new exchange of keys each time."""

_SOONER = 0.8
"""Of a key's life, after which the router asks for a new one: the gateway then never has to."""

DPD_DELAY_S = 10
"""Silence after which the other end is asked whether it lives."""
_TRIES, _TIMEOUT_S, _BASE = 4, 1.0, 1.6
"""Of a message. strongSwan's own 4 s, 1.8 and 5 take 165 s to give up; these 16 s."""


def give_up_s() -> float:
    """Seconds after which a message that nobody answers is given up ("Retransmission Timeouts" of strongSwan)."""
    return sum(_TIMEOUT_S * _BASE**number for number in range(_TRIES + 1))


def connections(lines: Iterable[Line], program: str) -> str:
    """The tunnels. program: what brings a tunnel's interface up and down with its keys."""
    return "\n".join(["connections {", *(_connection(line, program) for line in lines), "}", ""])


def _connection(line: Line, program: str) -> str:
    ike, esp = (int(life * _SOONER) for life in (line.cloud.ike_life, line.cloud.esp_life))
    return f"""\
  {line.name} {{
    version = {line.tunnel.ike_version}
    remote_addrs = {line.remote}
    proposals = {IKE}
    rekey_time = {ike}s
    dpd_delay = {DPD_DELAY_S}s
    keyingtries = 0
    mobike = no
    unique = replace
    if_id_in = {line.if_id}
    if_id_out = {line.if_id}
{_authentication(line)}
    children {{
      {line.name} {{
        local_ts = 0.0.0.0/0
        remote_ts = 0.0.0.0/0
        esp_proposals = {ESP[line.tunnel.esp]}
        rekey_time = {esp}s
        life_time = {line.cloud.esp_life}s
        start_action = start
        close_action = start
        dpd_action = start
        updown = {program} updown {line.interface}
      }}
    }}
  }}"""


def _authentication(line: Line) -> str:
    """Of both ends. The router's certificate is found by its subject and not named: another one of the same subject then
    changes nothing in the connection, and strongSwan drops the tunnels of a connection that changes."""
    if line.papers is None:
        return _ends(f"auth = psk\n      id = {line.tunnel.peer}", f"auth = psk\n      id = {line.remote}")
    local = f'auth = pubkey\n      id = "asn1dn:#{line.papers.subject.hex()}"'
    issuer = _authority_names(line)[0]
    return _ends(local, f'auth = pubkey\n      id = "{line.gateway_name}"\n      cacerts = {issuer}')


def _ends(local: str, remote: str) -> str:
    return f"    local {{\n      {local}\n    }}\n    remote {{\n      {remote}\n    }}"


def _authority_names(line: Line) -> list[str]:
    """A file each: swanctl reads the first certificate of a file."""
    count = len(line.papers.authorities) if line.papers else 0
    return [f"menagerie-{line.cluster}-{number}.pem" for number in range(count)]


def certificates(lines: Iterable[Line]) -> dict[str, str]:
    """Path -> PEM of every certificate that the connections need."""
    found = {}
    for line in lines:
        if line.papers:
            found[f"{FOLDER}/x509/{certificate_name(line)}"] = line.papers.certificate
            for name, text in zip(_authority_names(line), line.papers.authorities, strict=True):
                found[f"{FOLDER}/x509ca/{name}"] = text
    return found


def secrets(lines: Sequence[Line], keys: Mapping[str, str]) -> str:
    """The pre-shared keys. keys: connection -> key. In base64, which needs no quotes whatever the key holds."""
    out = ["secrets {"]
    for line in (each for each in lines if each.papers is None):
        coded = base64.b64encode(keys[line.name].encode()).decode()
        out += [f"  ike-{line.name} {{", f"    id = {line.remote}", f"    secret = 0s{coded}", "  }"]
    return "\n".join([*out, "}", ""])


def daemon(lines: Iterable[Line] = ()) -> str:
    """Routes are BGP's business. `bypass-lan`, which Debian loads, would take the site's own networks out of tunnels.
    With certificates, an end shows a new one without a gap: its new tunnel stands before the old one goes."""
    overlapping = "  make_before_break = yes\n" if any(line.papers for line in lines) else ""
    return f"""\
charon {{
{overlapping}\
  install_routes = no
  install_virtual_ip = no
  retransmit_tries = {_TRIES}
  retransmit_timeout = {_TIMEOUT_S}
  retransmit_base = {_BASE}
  plugins {{
    bypass-lan {{
      load = no
    }}
  }}
}}
"""
