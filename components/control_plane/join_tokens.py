"""join-tokens, which keeps a short-lived token in the store for workers in the region: its unit and its rights. Pure."""

from __future__ import annotations

from components.control_plane import paths
from components.control_plane.objects import Object, role, role_binding, user
from components.control_plane.service_unit import PYTHON_PATH, Unit, kubeconfig, python

NAME = "join-tokens"
USER = "menagerie:join-tokens"


def unit() -> Unit:
    """Return its unit."""
    return Unit(
        name=f"{NAME}.service",
        description="Short-lived tokens in the store, by which workers in the region join",
        documentation="https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/",
        words=python("tokens"),
        after=("cluster-bootstrap.service",),
        credentials=(("kubeconfig", kubeconfig(NAME)),),
        settings=(PYTHON_PATH,),
        # Runs as root, because only root may query the store.
        hidden=(
            f"{paths.PKI}/ca.key",
            f"{paths.PKI}/front-proxy-ca.key",
            paths.SERVING_KEY,
            f"{paths.PKI}/sa.key",
            paths.ETCD_KEY,
        ),
    )


def objects() -> tuple[Object, ...]:
    """Return its rights."""
    # RBAC can't restrict names that don't exist yet, or types of Secrets.
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "get", "patch"]}]
    return role(USER, rules), role_binding(USER, USER, user(USER))
