"""The real world: sockets, files, clocks and threads around the broker. Nothing is decided here."""
