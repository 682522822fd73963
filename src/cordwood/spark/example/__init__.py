"""A job as people write them, on topics: what ``cordwood demo`` runs."""
