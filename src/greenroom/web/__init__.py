"""What every page and API call needs: envelope, schemas, authentication, refusals."""
