"""menagerie-boot: bring this host to what its payload says, then start its units.

User data says the payload's name and SHA-256, and the host's store gives the payload. Nothing is
done before it is whole and verified. Every step may be repeated. A failed one is named and tried
again for ever; units start only once everything is in place. Standard library only.
"""
