"""ClickHouse as the tests have it: chdb, with the table that the Collector's exporter makes."""
