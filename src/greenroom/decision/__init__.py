"""What happens to one request, without sockets or bytes on the wire: the service below every front end."""
