"""menagerie-refresh: fetch changed secrets from this host's store, without a boot.

It writes their files, renews what is made from them, and restarts programs that read files only at their start and
started before one of them changed. So the next run completes an interrupted one, and a manual restart counts too. A
program with a lock restarts while no other host restarts it, and only if the others are healthy.
"""
