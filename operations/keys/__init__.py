"""Keys and certificates of a running cluster: what there is, and how it is changed for new (docs/keys.md)."""
