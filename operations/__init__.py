"""The verbs: what an operator does to a cluster, from `up` to `destroy`."""
