"""Controllers, which look after a cluster without an operator: their programs, image, Kubernetes objects and rights."""
