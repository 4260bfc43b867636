"""Keeps a cluster's ledger: reads the API, writes the journal and the days into the bucket. What is counted: `controllers.metering`."""
