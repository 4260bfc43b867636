"""TCP ports of the control plane, and of what runs on every node."""

API_PORT = 6443
"""kube-apiserver, on its hosts and at the load balancer, and the target port of the `kubernetes` Service."""
KONNECTIVITY_PORT = 8132
"""Where konnectivity agents connect, on the API-server hosts and at the load balancer."""
KONNECTIVITY_HEALTH_PORT = 8134
"""Health of a konnectivity agent on its node, on 127.0.0.1 only."""
METRICS_SERVER_PORT = 10250
"""metrics-server, at its pods' addresses, as in upstream's manifests."""
NODE_METRICS_PORT = 9100
"""node_exporter's default, on every node."""
