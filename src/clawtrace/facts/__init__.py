"""Raw rows become facts: the relations of `clawtrace.model.relations`."""
