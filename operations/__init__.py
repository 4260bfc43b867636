"""The verbs: an operator's actions on a cluster, from `up` to `destroy`."""
