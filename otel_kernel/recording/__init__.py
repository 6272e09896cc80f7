"""The recording: one SQLite file with every trip of one host's runs, open to plain SQL."""
