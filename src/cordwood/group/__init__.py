"""Consumer groups of both protocols, and the offsets they commit: a state machine for ``coordinator``."""
