"""The exporter `html`: a report of captures as one page that needs no network."""
