"""A shop to protect and a crowd to protect it from, so that everybody can see a waiting room at work within a minute."""
