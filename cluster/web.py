"""Settings of a spec for the pages for people that run in the cluster."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from cluster.model import Model
from cluster.network import NODE_PORTS
from cluster.quantities import Name, refuse
from cluster.references import reference_or

NodePort = Annotated[int, Field(ge=NODE_PORTS.start, lt=NODE_PORTS.stop)]


class StoredSecret(Model):
    """Where a key or a certificate with its key is stored, which is never a file of the inventory."""

    secret: Name
    """Name of the secret in the stack's configuration, as in: menagerie secret CLUSTER <name>."""

    @model_validator(mode="before")
    @classmethod
    def _is_no_secret(cls, value: Any) -> Any:
        message = "this may be the secret itself; it must be a reference to a secret"
        hint = "store it with ./menagerie secret <cluster> <name>, and write {secret: <name>}"
        return reference_or(refuse("WEB-002", message, hint), value)


class Web(Model):
    """The pages of `menagerie web`, served by a controller in the cluster. Only `kubectl port-forward` reaches them by default."""

    key: StoredSecret | None = None
    """Reference to a key that reads objects below ledger/days/ in the cluster's bucket of records, for bills. A lab has its own;
    with metering, every cloud needs one."""
    certificate: StoredSecret | None = None
    """Reference to a certificate with its chain and its private key, in PEM. With it the pages are served over TLS to everybody
    who reaches the pods; a token decides who reads."""
    node_port: NodePort | None = None
    """Port of every worker at which the pages are served; needs a certificate. Who reaches it, network.node_ports says.
    Default: none."""


def secret_names(web: Web | None) -> tuple[str, ...]:
    """Return the names of the secrets that the stack's configuration must have for the pages."""
    return tuple(each.secret for each in (web.key, web.certificate) if each) if web else ()
