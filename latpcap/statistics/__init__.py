"""Wireshark's menus Statistics and Analyze: conversations, endpoints, protocol hierarchy, expert information."""
