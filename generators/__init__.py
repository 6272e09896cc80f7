"""Writes the files of collector-config that are made from code: views, tables, dashboards."""
