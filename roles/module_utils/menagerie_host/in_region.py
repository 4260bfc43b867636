"""A worker in the region joins its cluster itself, with the code that Ansible runs for workers at sites.

``python3 -m menagerie_host.in_region prepare`` sets the kernel, and writes the host's name and address for flanneld;
``join`` comes after containerd. Both are idempotent, and their units retry them until they succeed. ``refresh`` follows
the cluster's authorities while the host runs, and records on its Node which it works with.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import time
from typing import Any

from . import Refused, facts, joining, kernel, run, units

SETTINGS = "/etc/menagerie/worker.json"
STORE = "/usr/local/sbin/menagerie-secret"
KUBEADM = "/usr/local/bin/kubeadm"
KUBELET = "kubelet.service"
TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")


def own_name() -> str:
    """Return the kubelet's name for its Node: the host name in lower case."""
    return socket.gethostname().lower()


def own_address(towards: str) -> str:
    """Return the address from which this host reaches `towards`. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.connect((towards, 9))
        return str(end.getsockname()[0])


def read(path: str) -> str:
    with open(path) as handle:
        return handle.read()


def prepare(settings: dict[str, Any]) -> None:
    for state in settings["kernel"]:
        files = [{"path": path, "text": read(path)} for path in state["paths"]]
        applied = kernel.converge(files, state["swap_off"], state["unsettable"], False)
        for line in [*applied.live, *(f"not settable here: {key}" for key in applied.unsettable)]:
            print(line, flush=True)
    path = settings["environment"]
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(path + ".new", "w") as handle:
        handle.write(f"NODE_NAME={own_name()}\nOWN_ADDRESS={own_address(settings['towards'])}\n")
    os.replace(path + ".new", path)


def registration(settings: dict[str, Any]) -> dict[str, Any]:
    """Return this host's JoinConfiguration."""
    text = json.dumps(settings["join"]["config"])
    for kind, value in (("name", own_name()), ("address", own_address(settings["towards"]))):
        text = text.replace(settings["placeholders"][kind], value)
    config: dict[str, Any] = json.loads(text)
    cloud_facts = facts.gather(settings["cloud"])
    if cloud_facts:
        node = config["nodeRegistration"]
        node["kubeletExtraArgs"] = with_facts(node["kubeletExtraArgs"], cloud_facts)
    return config


def with_facts(arguments: list[dict[str, str]], cloud_facts: facts.Facts) -> list[dict[str, str]]:
    """Return the kubelet's flags with the cloud's facts about the host. The pool's own settings win."""
    flags = {each["name"]: each["value"] for each in arguments}
    own = dict(label.split("=", 1) for label in flags.get("node-labels", "").split(",") if label)
    labels = {**cloud_facts.labels(), **own}
    flags["node-labels"] = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    flags.setdefault("provider-id", cloud_facts.provider_id)
    return [{"name": name, "value": value} for name, value in flags.items()]


def fetched_token(name: str, endpoint: str, ca_pem: str) -> str:
    """Return the store's current token. Refused, before any change, if it has none that is valid."""
    done = subprocess.run([STORE, name], check=False, capture_output=True, timeout=60)
    if done.returncode:
        raise Refused(done.stderr.decode(errors="replace").strip() or f"{STORE} ended with {done.returncode}")
    token = str(json.loads(done.stdout)[name]).strip()
    if not TOKEN.fullmatch(token):
        raise Refused(f"{name}: the store holds no token yet; API servers write one once they are up")
    if answer(endpoint, ca_pem, token) == http.HTTPStatus.UNAUTHORIZED:
        raise Refused(f"{name}: the token has expired, or is another cluster's; API servers write a new one in time")
    return token


def answer(endpoint: str, ca_pem: str, token: str) -> int:
    """Return the API's HTTP status for `token`. kubeadm would retry for minutes with an invalid one."""
    host, _, port = endpoint.rpartition(":")
    tls = ssl.create_default_context(cadata=ca_pem)
    connection = http.client.HTTPSConnection(host, int(port), timeout=10, context=tls)
    try:
        connection.request("GET", "/api", headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise Refused(f"https://{endpoint}: {error}") from None
    finally:
        connection.close()


def join(settings: dict[str, Any]) -> None:
    options = settings["join"]
    ca_pem = read(options["ca"])
    with joining.one_at_a_time():
        membership = joining.membership(ca_pem, options["endpoint"], time.time())
        if membership.state == "foreign":
            raise Refused(
                f"this host is a node of another cluster: {membership.reason}; replace it, or run 'kubeadm reset'"
            )
        desired = joining.Desired(
            config=registration(settings) if membership.state != "joined" else {},
            ca_pem=ca_pem,
            serving_pem=read(options["serving_ca"]),
            endpoint=options["endpoint"],
            kubeadm=KUBEADM,
            patches=options["patches"],
            machine=options["machine"],
            token=lambda: fetched_token(options["token"], options["endpoint"], ca_pem),
        )
        actions = joining.converge(desired, membership, False)
    print(f"{membership.state}: {', '.join(actions) or 'nothing to do'}", flush=True)
    for unit in settings["followers"] if "join" in actions else ():
        run(["systemctl", "try-restart", unit], f"systemctl try-restart {unit}")


def refresh(settings: dict[str, Any]) -> None:
    """Follow the cluster's authorities and record that. menagerie-refresh reads from the output which certificates are
    new."""
    options = settings["join"]
    ca_pem, serving_pem = read(options["ca"]), read(options["serving_ca"])
    with joining.one_at_a_time():
        membership = joining.membership(ca_pem, options["endpoint"], time.time())
        # Hosts join at boot, with retries.
        if joining.is_node(membership):
            for name, act in joining.following(ca_pem, serving_pem):
                act()
                print(name, file=sys.stderr)
            if units.outdated(KUBELET, [joining.CA]):
                run(["systemctl", "try-restart", KUBELET], f"systemctl try-restart {KUBELET}")
            joining.announce(options["endpoint"], serving_pem, False)
    print("{}")


def main() -> None:
    (step,) = sys.argv[1:]
    try:
        {"prepare": prepare, "join": join, "refresh": refresh}[step](json.loads(read(SETTINGS)))
    except (Refused, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        sys.exit(str(error) or repr(error))


if __name__ == "__main__":
    main()
