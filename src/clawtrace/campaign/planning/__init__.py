"""The planned runs of a campaign, and the fingerprints that identify them."""
