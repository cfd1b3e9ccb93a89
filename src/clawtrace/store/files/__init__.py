"""The file of a store: its schema, its owner, its transactions, and how much of it memory keeps."""
