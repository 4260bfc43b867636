"""Your clusters, one folder each, and the code that builds Ansible's inventory and runs Ansible."""
