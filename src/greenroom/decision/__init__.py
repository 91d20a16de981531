"""The decision about one request, without sockets or HTTP bytes: below every front end."""
