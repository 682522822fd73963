"""The cluster's metadata and what is decided from it: pure code over an image of the metadata store."""
