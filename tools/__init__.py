"""Programs built from pinned Go modules, one folder each, and container images built without a builder."""
