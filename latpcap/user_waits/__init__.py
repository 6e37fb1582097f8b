"""The account: what users waited for. Tables of one capture in, numbers out; finds no fault and speaks no word."""
