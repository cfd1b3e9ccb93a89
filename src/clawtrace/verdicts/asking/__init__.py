"""Questions to the store and to the world, and their answers as they come back."""
