"""strongSwan's configuration on an edge router: swanctl.conf(5), strongswan.conf(5).

A tunnel is an interface: both ends accept all traffic, and routes decide what goes in. `stacks` configures the gateways with the
same proposals, one per tunnel. Google recommends a single proposal, because a gateway with a choice may choose differently next
time ("Supported IKE ciphers").
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence

from network.gateway import Line, certificate_name

FOLDER = "/etc/swanctl"
IKE = "aes256gcm16-prfsha384-ecp384"
ESP = {"AES-256-GCM-16": "aes256gcm16-ecp384"}
"""`Tunnel.esp` -> strongSwan's name for it, with a new key exchange at each rekeying."""

_SOONER = 0.8
"""Share of a key's lifetime after which the router rekeys, so that the gateway never has to."""

DPD_DELAY_S = 10
"""Seconds of silence before dead peer detection probes the other end."""
_TRIES, _TIMEOUT_S, _BASE = 4, 1.0, 1.6
"""Retransmission of a message. strongSwan's defaults (4 s, 1.8 and 5) give up after 165 s, these after 16 s."""


def give_up_s() -> float:
    """Return the seconds after which strongSwan gives up on a message without an answer ("Retransmission Timeouts")."""
    return sum(_TIMEOUT_S * _BASE**number for number in range(_TRIES + 1))


def connections(lines: Iterable[Line], program: str) -> str:
    """Return the connections section. program: brings a tunnel's interface up and down with its keys."""
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
    """Return the authentication of both ends.

    The connection identifies the router's certificate by subject, not by file. So a new certificate with the same subject does
    not change the connection; strongSwan drops the tunnels of a changed connection.
    """
    if line.certificates is None:
        return _ends(f"auth = psk\n      id = {line.tunnel.peer}", f"auth = psk\n      id = {line.remote}")
    local = f'auth = pubkey\n      id = "asn1dn:#{line.certificates.subject.hex()}"'
    issuer = _authority_names(line)[0]
    return _ends(local, f'auth = pubkey\n      id = "{line.gateway_name}"\n      cacerts = {issuer}')


def _ends(local: str, remote: str) -> str:
    return f"    local {{\n      {local}\n    }}\n    remote {{\n      {remote}\n    }}"


def _authority_names(line: Line) -> list[str]:
    """Return one file name for each authority: swanctl reads only the first certificate of a file."""
    count = len(line.certificates.authorities) if line.certificates else 0
    return [f"menagerie-{line.cluster}-{number}.pem" for number in range(count)]


def certificates(lines: Iterable[Line]) -> dict[str, str]:
    """Return path -> PEM of every certificate that the connections need."""
    files = {}
    for line in lines:
        if line.certificates:
            files[f"{FOLDER}/x509/{certificate_name(line)}"] = line.certificates.certificate
            for name, text in zip(_authority_names(line), line.certificates.authorities, strict=True):
                files[f"{FOLDER}/x509ca/{name}"] = text
    return files


def secrets(lines: Sequence[Line], keys: Mapping[str, str]) -> str:
    """Return the pre-shared keys. keys: connection -> key. They are in base64, which never needs quoting."""
    out = ["secrets {"]
    for line in (line for line in lines if line.certificates is None):
        coded = base64.b64encode(keys[line.name].encode()).decode()
        out += [f"  ike-{line.name} {{", f"    id = {line.remote}", f"    secret = 0s{coded}", "  }"]
    return "\n".join([*out, "}", ""])


def daemon(lines: Iterable[Line] = ()) -> str:
    """Return the daemon's settings.

    BGP installs the routes, so strongSwan must not. `bypass-lan`, which Debian loads, would keep the site's own networks out of
    tunnels. With certificates, make_before_break lets an end switch to a new certificate without a gap: the new tunnel is up
    before the old one is removed.
    """
    overlapping = "  make_before_break = yes\n" if any(line.certificates for line in lines) else ""
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
