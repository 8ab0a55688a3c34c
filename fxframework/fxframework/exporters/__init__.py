"""The bundled exporters for captures of any format, registered through the public hooks."""
