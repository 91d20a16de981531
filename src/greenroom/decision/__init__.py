"""The decision about one request, without sockets or HTTP bytes: the service below every front
end.
"""
