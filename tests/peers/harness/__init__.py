"""What the outside tier's tests share. Standard library only."""
