"""What the control listener answers: health, metrics and the state of the rooms."""
