"""Storage of a site: Rook's resources and what storage hosts are told, from the model and from what hosts have found."""
