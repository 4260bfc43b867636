"""menagerie-boot: apply this host's payload, then start its units.

User data has the payload's name and SHA-256; the host's store has the payload. Nothing changes
before the payload is complete and verified. Steps are idempotent. A failed one is logged and
retried for ever; units start only once everything is in place. Standard library only.
"""
