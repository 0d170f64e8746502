"""What the pages ask: queries in, frozen values out. Nothing here writes, and nothing knows of HTTP."""
