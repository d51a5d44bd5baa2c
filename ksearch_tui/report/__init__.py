"""The report of a session as one HTML page: facts from `sessions.report`, worded and drawn."""
