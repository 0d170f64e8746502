"""HTTP endpoints of programs that speak a protocol of their own, beside the JSON API."""
