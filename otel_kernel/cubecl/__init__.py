"""CubeCL's environments: the SQLite files that its programs record themselves in."""
