"""The controls of the CIS benchmark and our own, decided from evidence; the collector of it that hosts run. Pure.

`cluster.audit.controls` has the controls as data, `cluster.audit.host` what hosts run to give evidence, `cluster.audit.decide` the decisions.
"""
