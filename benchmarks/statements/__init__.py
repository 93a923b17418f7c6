"""Random classes of plain Python around layers: what decides about a layer changes on the way."""
