"""Redis as the engine of many processes: its functions, and the clients that call them."""
