-- Who holds a task proves it with this number; it has the name that the field gives it.
ALTER TABLE tasks RENAME COLUMN fence TO fencing_token;
