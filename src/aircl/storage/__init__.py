"""What all reading and writing goes through: one writer, locks, clean-up, and the checks of what was read."""
