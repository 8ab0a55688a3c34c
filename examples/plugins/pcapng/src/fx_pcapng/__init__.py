"""Packet captures (pcapng) as a format of fxframework."""
