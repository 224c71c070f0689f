-- The word pieces of the text that was embedded, for late interaction, as the engine writes them; NULL where they were not
-- made.
ALTER TABLE embeddings ADD COLUMN pieces BLOB;
