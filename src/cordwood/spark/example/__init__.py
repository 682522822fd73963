"""A job as people would write it, on topics: ``cordwood demo`` runs it."""
