"""The verbs: an operator's actions on a cluster, from `up` to `destroy`. A small verb, such as `reboot`, is one file."""
