"""One broker without any I/O: requests, time and completions from the disk go in, effects come out."""
