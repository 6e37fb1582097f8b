"""What users waited for: numbers computed from the tables of one capture, without faults or sentences."""
