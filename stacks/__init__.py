"""The Pulumi programs: one cluster per stack, one folder per cloud."""
