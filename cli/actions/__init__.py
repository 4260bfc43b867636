"""What verbs and sections of `status` do once their arguments and the spec are checked. Imports clients and engines."""
