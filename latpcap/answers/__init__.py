"""Answers in plain words: findings and tables in, the headline, the lines below it and their numbers out."""
