"""Reports: one verdict and its evidence, shown as a page, in a terminal, as rows and as JUnit."""
