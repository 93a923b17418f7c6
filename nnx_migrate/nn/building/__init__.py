"""What constructors of migrated classes use: names, factories, copies, fields."""
