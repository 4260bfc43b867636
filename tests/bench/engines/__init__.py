"""Prometheus and VictoriaMetrics under the same faults: `python -m tests.bench.engines`."""
