"""What plugins are built from: what every reader, writer, exporter and step does, once."""
