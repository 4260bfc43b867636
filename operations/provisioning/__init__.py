"""Machines from bare metal: installer files, BMCs by Redfish, identities of machines."""
