"""The real world around the broker: sockets, files, clocks and threads. No decisions are made here."""
