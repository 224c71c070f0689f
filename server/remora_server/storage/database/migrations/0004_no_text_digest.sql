-- No reader ever used the digest of the embedded text.
ALTER TABLE embeddings DROP COLUMN text_digest;
