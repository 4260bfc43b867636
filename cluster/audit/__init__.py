"""Controls of the CIS benchmark and our own, decided from evidence, and the collector that hosts run. Pure.

`cluster.audit.controls` has the controls as data, `cluster.audit.host` the collector for hosts, `cluster.audit.decide` the decisions.
"""
