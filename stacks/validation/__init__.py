"""Plans, creates, changes and destroys stacks in the simulated clouds, and writes reports for CI.

`fleet.validate` validates many clusters, each in a separate process; `stages.validate` validates one in this process,
with any program. The result is a `model.Report`; `reports` writes it for machines.
"""
