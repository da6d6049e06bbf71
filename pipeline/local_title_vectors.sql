-- From the first version to the second, and from a bundle of format 1. Until a file is ingested again, the vector
-- of its page's first chunk stands for that of its title; without its digest the next ingestion takes it as changed.

ALTER TABLE page ADD COLUMN title_vector BLOB NOT NULL DEFAULT x'';

UPDATE page SET title_vector = (
    SELECT embedding FROM chunk JOIN chunk_vec ON chunk_vec.chunk = chunk.id
    WHERE chunk.page = page.id ORDER BY ordinal LIMIT 1
);

UPDATE file SET digest = '';
