"""What a user holds: a capture, a stream of it, and the reports and pictures that they give."""
