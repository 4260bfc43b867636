"""Simulated Azure, AWS and Google Cloud: a Pulumi provider for the real engine.

What is simulated: the provider protocol (check, diff, create, read, update, delete, functions, previews with
unknown values, secrets); ids, ARNs and self links of the real shape; properties that cannot be changed in place;
names, ranges, references, regions, dependants and deletion protection, refused in the words of the real APIs;
throttling, failures, answers that get lost, and changes behind the engine's back.

What is not: nothing runs. There are no machines, packets, permissions or prices, no quotas but those that a row or
`Offers.vcpus` names, no eventual consistency and
no waiting. A type without rules of its own is stored as it was declared: any change to it is an update, nothing about
it is refused, and `World.unproven` names it. A rule is as true as the page or provider that it was read from; none
has been compared with a real account.

    world, faults = World(), Faults()
    with simulated_clouds(world, faults) as environment:
        ...  # run the engine with `environment` added to its own
        world.orphans(deployment), world.unproven, faults.unmet

`rules` is the vocabulary in which `aws`, `gcp` and `azure` are written: a new type is a row of a table there, and a
refusal that no row can say is a function. Each of them has its own words for a refusal in `words.py` and the functions
of its provider in `functions.py`; a function that is not there is refused, because an answer would be invented.
"""
