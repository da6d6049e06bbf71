-- What a local index has beyond the tables of a bundle (handler/bundle/schema.sql).
--
-- Its ids have gaps: a page's chunks are inserted together, behind all others, and the reader counts rows by the
-- order of ids. Ids without gaps would need the keyword index anew at each change, by the writer or by each
-- reader: 4.7 s for 50,000 chunks and 0.4 s for 5,000, where a page is put in in 0.02 s and all is read again in
-- 0.7 s and 0.1 s.

CREATE TABLE file (
    page INTEGER PRIMARY KEY REFERENCES page(id),
    location TEXT NOT NULL UNIQUE,  -- the file's absolute path
    digest TEXT NOT NULL,           -- of all that its chunks were made of
    text_digest TEXT NOT NULL,      -- of the chunks' texts: pages with one text count as one page
    ingested_at TEXT NOT NULL       -- UTC, to the second
);
CREATE INDEX file_text ON file(text_digest);

CREATE TRIGGER chunk_deleted AFTER DELETE ON chunk BEGIN
    DELETE FROM chunk_fts WHERE rowid = old.id;
    DELETE FROM chunk_vec WHERE chunk = old.id;
END;

CREATE TRIGGER page_deleted BEFORE DELETE ON page BEGIN
    DELETE FROM chunk WHERE page = old.id;
    DELETE FROM file WHERE page = old.id;
END;
