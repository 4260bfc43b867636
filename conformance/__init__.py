"""`make conformance`: upstream's Conformance suite, run against a cluster."""
