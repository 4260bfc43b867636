"""Paths on an API-server host. kube-bench looks for certificates and kubeconfigs at exactly these."""

KUBERNETES = "/etc/kubernetes"
PKI = f"{KUBERNETES}/pki"
CONFIG = f"{KUBERNETES}/menagerie"
BIN = "/usr/local/bin"
LIBRARY = "/usr/local/lib/menagerie"
AUDIT_LOG = "/var/log/kubernetes/audit/audit.log"
KONNECTIVITY_SOCKET = "/run/konnectivity-server/konnectivity-server.socket"
