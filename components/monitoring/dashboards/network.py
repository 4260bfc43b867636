"""The network of hosts, the RDMA fabric, and DNS."""

from __future__ import annotations

from components.monitoring.dashboards.model import Dashboard, Panel, Query, chart

_LINK = "{{node}} {{device}}"
_FEW = 'device!~"lo|cni0|flannel.*"'


def _worst(metric: str, window: str = "15m") -> str:
    return f"topk(10, increase({metric}[{window}]) > 0)"


NETWORK = Dashboard(
    "menagerie-network",
    "Network",
    "Sums over all hosts, and the ten worst links. A link that is not in a chart has no such fault.",
    (
        Panel(
            "Bytes of all hosts",
            (
                Query(f"sum(rate(node_network_receive_bytes_total{{{_FEW}}}[5m]))", "received"),
                Query(f"sum(rate(node_network_transmit_bytes_total{{{_FEW}}}[5m]))", "sent"),
            ),
            unit="Bps",
        ),
        Panel(
            "Bytes on the RDMA fabric",
            (
                Query("sum(rate(node_infiniband_port_data_received_bytes_total[5m]))", "received"),
                Query("sum(rate(node_infiniband_port_data_transmitted_bytes_total[5m]))", "sent"),
            ),
            unit="Bps",
        ),
        chart("RDMA links that went down", _worst("node_infiniband_link_downed_total", "1h"), _LINK),
        chart("RDMA ports that receive faulty packets", _worst("node_infiniband_port_errors_received_total"), _LINK),
        chart("Faulty packets", _worst("node_network_receive_errs_total"), _LINK),
        chart("Packets dropped on receipt", _worst("node_network_receive_drop_total"), _LINK),
        chart("TCP segments sent again",
              "topk(10, rate(node_netstat_Tcp_RetransSegs[5m]) / rate(node_netstat_Tcp_OutSegs[5m]))", "{{node}}",
              unit="percentunit", about="More than 1 %: packets are lost."),
        chart("Neighbour tables, share of the limit", "topk(10, menagerie_neighbours_entries / menagerie_neighbours_limit)",
              "{{node}} {{family}}", unit="percentunit"),
        chart("Neighbours refused", _worst("menagerie_neighbours_overflows_total"), "{{node}} {{family}}"),
        chart("Connection tracking, share of the limit",
              "topk(10, node_nf_conntrack_entries / node_nf_conntrack_entries_limit)", "{{node}}", unit="percentunit"),
        chart("Slowest 1 % of DNS answers",
              "histogram_quantile(0.99, sum by (le) (rate(coredns_dns_request_duration_seconds_bucket[5m])))", unit="s"),
        chart("Resolvers that did not answer", "sum(rate(coredns_forward_healthcheck_broken_total[5m]))", unit="ops"),
        chart("Nodes without a tunnel to an API server",
              "count(menagerie_agent_tunnels == 0)"),
    ),
)  # fmt: skip
