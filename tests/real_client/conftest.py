"""These run only where the client is: PLIMSOLL_TEST_CLIENT=/path/to/claude. Elsewhere they are not collected."""

import os

CLIENT = os.environ.get("PLIMSOLL_TEST_CLIENT", "")
collect_ignore_glob = [] if CLIENT else ["test_*.py"]
