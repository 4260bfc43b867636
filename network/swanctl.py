"""strongSwan's settings of an edge router: swanctl.conf(5), strongswan.conf(5).

Both ends of a tunnel take everything in and leave it to routes what goes in: a tunnel is an interface. Proposals are what
`stacks` gives the gateways, one a tunnel: Google advises so, for a gateway that may choose may choose otherwise the next
time ("Supported IKE ciphers").
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence

from network.gateway import Line

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
    local {{
      auth = psk
      id = {line.tunnel.peer}
    }}
    remote {{
      auth = psk
      id = {line.remote}
    }}
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


def secrets(lines: Sequence[Line], keys: Mapping[str, str]) -> str:
    """The pre-shared keys. keys: connection -> key. In base64, which needs no quotes whatever the key holds."""
    out = ["secrets {"]
    for line in lines:
        coded = base64.b64encode(keys[line.name].encode()).decode()
        out += [f"  ike-{line.name} {{", f"    id = {line.remote}", f"    secret = 0s{coded}", "  }"]
    return "\n".join([*out, "}", ""])


def daemon() -> str:
    """Routes are BGP's business. `bypass-lan`, which Debian loads, would take the site's own networks out of tunnels."""
    return f"""\
charon {{
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
