"""Answers in plain words: reads findings and tables, returns a headline, the lines below it, and their numbers."""
