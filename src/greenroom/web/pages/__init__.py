"""What every page of the dashboard needs: its request, forms, rendering and rows of routes."""
