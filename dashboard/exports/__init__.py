"""Lists as files: what a page shows of a list, all of it, as CSV for spreadsheets and JSON for programs."""
