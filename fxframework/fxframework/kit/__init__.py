"""The toolkit for plugins: code shared by readers, writers, exporters and steps."""
