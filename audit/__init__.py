"""What the CIS Kubernetes benchmark asks, and we ourselves, decided from evidence of a running cluster. Pure.

`audit.controls` has the controls as data, `audit.host` what hosts run to give evidence, `audit.decide` the decisions.
"""
