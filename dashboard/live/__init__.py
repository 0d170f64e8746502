"""Pages that change by themselves: what changed, who is told, and the parts of a page that are fetched then."""
