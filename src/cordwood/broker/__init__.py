"""One broker without any I/O: requests, time and answers of the disk go in, effects come out."""
