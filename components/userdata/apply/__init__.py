"""menagerie-apply SHA256: make this running host what another payload says, which its store must want of it.

menagerie-boot does it, as at a boot. Then units that are no longer wanted are stopped, those that are older than what they
run are restarted, and files that only former payloads had are removed. A host that still has a former payload on its disk is half
way, and the same run again does the rest. An etcd is restarted while no other host restarts one.
"""
