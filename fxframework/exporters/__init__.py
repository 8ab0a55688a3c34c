"""The bundled exporters that need no format, registered through the same hooks as anybody's."""
