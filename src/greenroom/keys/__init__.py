"""Keys and what they seal."""
