"""The ledger of a cluster: hosts times time by team, namespace, user, pool and use, from what the API says of its objects.

`facts` are read from objects (`observe`) and kept in a journal. `history` reads a journal, `ledger` counts a day of it, and
`day` is the object that is kept of a day. `bill` adds days up. All of it is pure: `controllers.bookkeeping` reads and writes.
"""
