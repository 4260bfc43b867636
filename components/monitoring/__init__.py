"""Alerts, recording rules and dashboards of a cluster, as text for Prometheus, Alertmanager and Grafana."""
