"""What several rooms use and none owns: memory, files, documentation of attributes."""
