"""One partition as a broker holds it: its log, who leads it, and up to where it is committed."""
