"""Order of calls that may overlap."""
