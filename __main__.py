"""Entry of the ordinary Pulumi CLI: ``pulumi up -s <cluster>``."""

from stacks.program import main

main()
