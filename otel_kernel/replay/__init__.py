"""The records of a CubeCL environment as spans, under ids that are the same whenever it is replayed."""
