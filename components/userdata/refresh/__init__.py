"""menagerie-refresh: take up what the store holds anew for this host, without a boot.

Files are placed, what is made of them is remade, and programs that read them at their start only are restarted: those
whose start is older than one of their files. So a run that was cut short is made up for by the next, and a restart by
hand counts too. A program with a lock is restarted while no other host does so, and only if the others can do without.
"""
