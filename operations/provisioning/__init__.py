"""Installation of bare machines: installer files, BMCs over Redfish, machine identities."""
