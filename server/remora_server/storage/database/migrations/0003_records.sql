-- Every kind of records has a table that is made from its declaration. What these two hold is taken over into such tables
-- when the database is opened (`taking_over.py`), after which they are dropped.
ALTER TABLE steps RENAME TO old_steps;
ALTER TABLE working_memories RENAME TO old_working_memories;
