"""The budgets, measured as ratios in one run wherever two things can run side by side. `make bench`."""
