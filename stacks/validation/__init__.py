"""`validate`: stacks planned, made, changed and destroyed in the simulated clouds; reports for CI.

`fleet.validate` runs many clusters, each in a process of its own; `stages.validate` runs one, in this process and
with any program. What comes out is a `model.Report`; `reports` writes it for machines.
"""
