"""Load balancers of Google Cloud."""

from __future__ import annotations

import re
from collections.abc import Callable

from sandbox.simcloud.gcp.addresses import busy, first_free, fits, literal, reserved, reserved_as, subnetwork_of, used
from sandbox.simcloud.gcp.common import (
    GLOBAL,
    REGIONAL,
    bare,
    between,
    compute,
    kept,
    last,
    network_of,
    numbered,
    one_of,
)
from sandbox.simcloud.gcp.network import IN_NETWORK, IN_SUBNETWORK
from sandbox.simcloud.gcp.tokens import (
    BACKEND,
    GLOBAL_ADDRESS,
    GROUP,
    HEALTH_CHECK,
    MANAGER,
    REGION_HEALTH_CHECK,
    REGION_MANAGER,
)
from sandbox.simcloud.gcp.words import conflict, invalid
from sandbox.simcloud.rules import Call, Reason, Reference
from sandbox.simcloud.values import at

_CHECKS = ("tcpHealthCheck", "sslHealthCheck", "httpHealthCheck", "httpsHealthCheck", "http2HealthCheck",
           "grpcHealthCheck", "grpcTlsHealthCheck")  # fmt: skip
# Properties that terraform-provider-google refuses for passthrough load balancers.
_MANAGED_ONLY = ("capacityScaler", "maxConnections", "maxConnectionsPerInstance", "maxConnectionsPerEndpoint",
                 "maxRate", "maxRatePerInstance", "maxRatePerEndpoint", "maxUtilization")  # fmt: skip
_MOST_PORTS = 5
# "Forwarding rule for Private Service Connect": the name becomes part of DNS names.
_PSC_NAME = re.compile(r"[a-z][a-z0-9]{0,19}")
_PSC_TARGETS = ("all-apis", "vpc-sc")


def _scheme(call: Call, default: str) -> str:
    return str(call.inputs.get("loadBalancingScheme", default))


def _kind(call: Call) -> str:
    given = [name for name in _CHECKS if call.inputs.get(name) is not None]
    return re.sub("TLS$", "_WITH_TLS", given[0].removesuffix("HealthCheck").upper()) if given else ""


def _one_check(call: Call) -> None:
    given = [name for name in _CHECKS if call.inputs.get(name) is not None]
    if len(given) != 1:
        raise conflict(
            given[0] if given else _CHECKS[0],
            f"{'only ' if given else ''}one of `{','.join(_CHECKS)}` {'can' if given else 'must'} be specified",
            "set exactly one",
        )


def _timing(call: Call) -> None:
    interval, timeout = (int(call.inputs.get(name) or 5) for name in ("checkIntervalSec", "timeoutSec"))
    if timeout > interval:
        raise invalid(
            "timeoutSec", str(timeout), "TimeoutSec should be less than checkIntervalSec.",
            f"at most {interval} seconds",
        )  # fmt: skip


def _backends(call: Call) -> None:
    """Check balancing mode and health check ("Internal passthrough Network Load Balancer overview")."""
    scheme = _scheme(call, "INTERNAL")
    if scheme not in ("INTERNAL", "EXTERNAL"):
        return
    if not call.inputs.get("healthChecks"):
        raise invalid("healthChecks", "", f"An {scheme} backend service has exactly one health check.", "give one")
    if scheme == "INTERNAL" and call.text("protocol") not in ("", "TCP", "UDP", "UNSPECIFIED"):
        raise invalid("protocol", call.text("protocol"), "Invalid for an INTERNAL backend service.", "TCP or UDP")
    for row in at(call.inputs, "backends[]"):
        for name in _MANAGED_ONLY:
            if row.get(name):
                raise conflict(
                    f"backends.{name}", f"cannot be set for non-managed backend service, found value {row[name]}",
                    "leave it out",
                )  # fmt: skip
        mode = row.get("balancingMode", "UTILIZATION")
        if mode != "CONNECTION":
            raise invalid(
                "backends[0].balancingMode", mode, f"Balancing mode must be CONNECTION for an {scheme} backend service.",
                "set balancingMode to CONNECTION (UTILIZATION is the default)",
            )  # fmt: skip


def _frontend(call: Call) -> None:
    """Check a rule of a passthrough load balancer; of external rules, only those with a backend service."""
    scheme = _scheme(call, "EXTERNAL")
    backend = call.target("backendService")
    if backend is not None:
        _same_scheme(scheme, str(backend.inputs.get("loadBalancingScheme", "INTERNAL")))
    if scheme not in ("INTERNAL", "EXTERNAL") or (scheme == "EXTERNAL" and not call.inputs.get("backendService")):
        return
    ports, all_ports = list(at(call.inputs, "ports[]")), bool(call.inputs.get("allPorts"))
    ranged = scheme == "EXTERNAL" and bool(call.inputs.get("portRange"))
    if len(ports) > _MOST_PORTS:
        raise invalid("ports", str(len(ports)), f"At most {_MOST_PORTS} ports may be specified.", "or set allPorts")
    if [bool(ports), all_ports, ranged].count(True) != 1:
        raise invalid(
            "ports[0]", "", "Forwarding rules with backend services must specify at least one port.",
            "give ports, or allPorts, not both",
        )  # fmt: skip
    if scheme == "INTERNAL" and call.inputs.get("portRange"):
        raise invalid("portRange", call.text("portRange"), "Not for an INTERNAL forwarding rule.", "use ports")
    if backend is None:
        raise invalid("backendService", "", "An INTERNAL forwarding rule needs a backend service.", "set it")
    _same_protocol(call, str(backend.inputs.get("protocol", "TCP")))


def _same_scheme(own: str, scheme: str) -> None:
    if scheme != own:
        raise invalid("loadBalancingScheme", own, f"The backend service's scheme is {scheme}.", "both must be the same")


def _same_protocol(call: Call, protocol: str) -> None:
    own = call.text("IPProtocol") or call.text("ipProtocol") or "TCP"
    if protocol not in (own, "UNSPECIFIED"):
        raise invalid("IPProtocol", own, f"The backend service's protocol is {protocol}.", "both must be the same")


def _front_address(call: Call) -> None:
    """Check that the address is the subnetwork's and free, or reserved for this; a shared one must be reserved as such."""
    subnetwork, text = subnetwork_of(call, call.text("subnetwork")), call.text("ipAddress")
    if _scheme(call, "EXTERNAL") != "INTERNAL" or not text:
        return
    if subnetwork is None:
        raise invalid("subnetwork", "", "Subnetwork should be specified for custom subnetmode network.", "set it")
    target, address = call.target("ipAddress"), literal(text)
    if target is None and address is None:
        raise call.refusal(Reason.MISSING, path="ipAddress", value=bare(call, text))
    address = address or literal(str(target.outputs["address"]) if target else "")
    if address is None:
        return
    fits(call, "ipAddress", address, subnetwork)
    holder = reserved(call, subnetwork).get(str(address))
    shared = holder is not None and holder.inputs.get("purpose") == "SHARED_LOADBALANCER_VIP"
    for other, by in used(call, subnetwork):
        if other == str(address) and not shared:
            raise busy(address, by)


def _address_of(call: Call) -> str:
    target, subnetwork = call.target("ipAddress"), subnetwork_of(call, call.text("subnetwork"))
    if target:
        return str(target.outputs["address"])
    given = call.text("ipAddress")
    return given or str(kept(call, "ipAddress", lambda: first_free(call, subnetwork) if subnetwork else "34.64.0.1"))


def _psc(call: Call) -> None:
    """Check an endpoint for Google's APIs ("About accessing Google APIs through endpoints")."""
    target = call.text("target")
    if target not in _PSC_TARGETS:
        return
    if not _PSC_NAME.fullmatch(call.name):
        raise invalid(
            "name", call.name, "Must be a string of 1 to 20 characters of a-z and 0-9, a letter first.",
            "the name becomes part of DNS names",
        )  # fmt: skip
    if _scheme(call, "EXTERNAL_MANAGED"):
        raise invalid(
            "loadBalancingScheme", _scheme(call, "EXTERNAL_MANAGED"), f"Must be empty for target {target}.",
            'set loadBalancingScheme to ""',
        )  # fmt: skip
    address = call.target("ipAddress")
    if address and address.inputs.get("purpose") != "PRIVATE_SERVICE_CONNECT":
        raise invalid("IPAddress", address.id, "Its purpose must be PRIVATE_SERVICE_CONNECT.", "reserve it for that")
    network = call.target("network")
    if address and network and network_of(call, address) != network.id:
        raise invalid("network", network.id, f"'{address.id}' is of another network.", "use the address's network")


def _global_by_address(call: Call, text: str) -> str:
    """Return the ID of an address given by address or name."""
    if literal(text) is None:
        return bare(call, text)
    own = call.text("network")
    for record in call.world.of_type(GLOBAL_ADDRESS):
        if record.outputs["address"] == text and last(str(record.inputs.get("network", ""))) == last(own):
            return record.id
    return text


_checking = (
    _one_check,
    _timing,
    # "HealthCheck", Compute Engine API.
    between("checkIntervalSec", 1, 300),
    between("timeoutSec", 1, 300),
    between("healthyThreshold", 1, 10),
    between("unhealthyThreshold", 1, 10),
    *(between(f"{name}.port", 1, 65535) for name in _CHECKS),
)
_checked: dict[str, Callable[[Call], object]] = {
    "type": _kind,
    "checkIntervalSec": lambda _: 5,
    "timeoutSec": lambda _: 5,
    "healthyThreshold": lambda _: 2,
    "unhealthyThreshold": lambda _: 2,
}

_health_check = compute(
    "HealthCheck", "health_check", "healthChecks", where=GLOBAL, computed=_checked, refuse=_checking
)
_region_health_check = compute(
    "RegionHealthCheck",
    "health_check",
    "healthChecks",
    where=REGIONAL,
    computed={**_checked, "healthCheckId": numbered},
    refuse=_checking,
)

_backend = compute(
    "RegionBackendService",
    "backend_service",
    "backendServices",
    where=REGIONAL,
    computed={
        "generatedId": numbered,
        "loadBalancingScheme": lambda _: "INTERNAL",
        "protocol": lambda _: "TCP",
        "sessionAffinity": lambda _: "NONE",
        "timeoutSec": lambda _: 30,
        "connectionDrainingTimeoutSec": lambda _: 300,
    },
    replace_on=("haPolicy.fastIpMove", "loadBalancingScheme", "network", "params"),
    references=(
        IN_NETWORK,
        Reference("backends[].group", (REGION_MANAGER, MANAGER, GROUP), resolve=bare),
        Reference("healthChecks", (REGION_HEALTH_CHECK, HEALTH_CHECK), resolve=bare),
    ),
    refuse=(_backends,),
)

_forwarding_rule = compute(
    "ForwardingRule",
    "forwarding_rule",
    "forwardingRules",
    where=REGIONAL,
    computed={
        "forwardingRuleId": numbered,
        "loadBalancingScheme": lambda _: "EXTERNAL",
        "ipProtocol": lambda _: "TCP",
        "networkTier": lambda _: "PREMIUM",
        "baseForwardingRule": lambda _: "",
    },
    always={"ipAddress": _address_of},
    replace_on=(
        *("ipAddress", "ipProtocol", "allPorts", "backendService", "description", "ipCollection", "ipVersion"),
        *("isMirroringCollector", "loadBalancingScheme", "network", "networkTier", "noAutomateDnsZone", "portRange"),
        *("ports", "serviceDirectoryRegistrations", "serviceLabel", "sourceIpRanges", "subnetwork"),
    ),
    references=(
        IN_NETWORK,
        IN_SUBNETWORK,
        Reference("backendService", (BACKEND,), resolve=bare),
        reserved_as("ipAddress"),
    ),
    refuse=(_frontend, _front_address),
)

_global_forwarding_rule = compute(
    "GlobalForwardingRule",
    "forwarding_rule",
    "forwardingRules",
    where=GLOBAL,
    computed={
        "forwardingRuleId": numbered,
        "pscConnectionId": lambda call: numbered(call) if call.text("target") in _PSC_TARGETS else "",
        "pscConnectionStatus": lambda call: "ACCEPTED" if call.text("target") in _PSC_TARGETS else "",
    },
    replace_on=(
        *("ipAddress", "ipProtocol", "description", "ipVersion", "metadataFilters", "network", "networkTier"),
        *("noAutomateDnsZone", "portRange", "serviceDirectoryRegistrations", "sourceIpRanges", "subnetwork"),
    ),
    references=(
        IN_NETWORK,
        IN_SUBNETWORK,
        Reference("ipAddress", (GLOBAL_ADDRESS,), resolve=_global_by_address, optional=True),
    ),
    refuse=(one_of("target"), _psc),
)

TYPES = (_health_check, _region_health_check, _backend, _forwarding_rule, _global_forwarding_rule)
