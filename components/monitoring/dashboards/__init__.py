"""The dashboards."""

from __future__ import annotations

from components.monitoring.dashboards.cluster import CLUSTER
from components.monitoring.dashboards.etcd import ETCD
from components.monitoring.dashboards.fleet import FLEET
from components.monitoring.dashboards.gpu_host import GPU_HOST
from components.monitoring.dashboards.model import Dashboard
from components.monitoring.dashboards.network import NETWORK
from components.monitoring.dashboards.team import TEAM

DASHBOARDS: tuple[Dashboard, ...] = (FLEET, CLUSTER, ETCD, NETWORK, GPU_HOST, TEAM)
