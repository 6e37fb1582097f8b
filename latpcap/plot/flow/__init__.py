"""Flow graphs: one connection of one capture (`graph`), and packets between several points (`lifelines`)."""
