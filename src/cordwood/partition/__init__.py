"""One partition on a broker: its log, its leader, and up to which offset it is committed."""
