"""Programs built from pinned Go modules, a folder each; and container images without a builder."""
