"""Simulated Azure, AWS and Google Cloud: a Pulumi provider for the real engine.

Simulated: the provider protocol (check, diff, create, read, update, delete, functions, previews with unknown values,
secrets); IDs, ARNs and self links in the real format; properties that cannot be changed in place; rules about names,
ranges, references, regions, dependants and deletion protection, refused with the messages of the real APIs;
throttling, failures, lost responses, and changes that the engine does not know of. Services use keys by grants, which may
take a while to work (`Offers.slow_grants`).

Not simulated: running resources. There are no machines, packets, permissions of the caller or prices, no quotas except
those of a rule or of `Offers.vcpus`, no other eventual consistency and no waiting. A type without rules is stored as declared: every
change to it is an update, only its inputs are compared with the SDK, and `World.unproven` lists it. Each rule comes from a page or a
provider's source; none has been compared with a real account.

    world, faults = World(), Faults()
    with simulated_clouds(world, faults) as environment:
        ...  # run the engine with `environment` added to its own
        world.orphans(deployment), world.unproven, faults.unmet

`rules` is the vocabulary of `aws`, `gcp` and `azure`: a new type is a row of a table there, and a refusal that does
not fit a row is a function. Each cloud has its refusal messages in `words.py` and its provider's functions in
`functions.py`. A function that is not there is refused, because any result would be invented.
"""
