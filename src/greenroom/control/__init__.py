"""What an operator can ask about and do, without any HTTP."""
