-- What a local index has beyond the tables of a bundle (handler/bundle/schema.sql). Whoever writes brings the
-- function fold().
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

-- Unlike a bundle's, it forgets a chunk without being told its words, which another version may fold otherwise.
DROP TABLE chunk_fts;
CREATE VIRTUAL TABLE chunk_fts USING fts5(
    title, heading, text,
    content = '',
    contentless_delete = 1,
    tokenize = "{tokenizer}"
);

CREATE VIEW chunk_words AS
SELECT
    chunk.id,
    page.id AS page,
    fold(page.title) AS title,
    fold((SELECT coalesce(group_concat(value, ' ' ORDER BY key), '') FROM json_each(chunk.heading))) AS heading,
    fold(chunk.text) AS text
FROM chunk JOIN page ON page.id = chunk.page;

INSERT INTO chunk_fts(rowid, title, heading, text) SELECT id, title, heading, text FROM chunk_words;

CREATE TRIGGER chunk_inserted AFTER INSERT ON chunk BEGIN
    INSERT INTO chunk_fts(rowid, title, heading, text)
    SELECT id, title, heading, text FROM chunk_words WHERE id = new.id;
END;

CREATE TRIGGER chunk_updated AFTER UPDATE ON chunk BEGIN
    DELETE FROM chunk_fts WHERE rowid = old.id;
    INSERT INTO chunk_fts(rowid, title, heading, text)
    SELECT id, title, heading, text FROM chunk_words WHERE id = new.id;
END;

CREATE TRIGGER page_updated AFTER UPDATE OF title ON page BEGIN
    DELETE FROM chunk_fts WHERE rowid IN (SELECT id FROM chunk WHERE page = new.id);
    INSERT INTO chunk_fts(rowid, title, heading, text)
    SELECT id, title, heading, text FROM chunk_words WHERE page = new.id;
END;

CREATE TRIGGER chunk_deleted AFTER DELETE ON chunk BEGIN
    DELETE FROM chunk_fts WHERE rowid = old.id;
    DELETE FROM chunk_vec WHERE chunk = old.id;
END;

CREATE TRIGGER page_deleted BEFORE DELETE ON page BEGIN
    DELETE FROM chunk WHERE page = old.id;
    DELETE FROM file WHERE page = old.id;
END;
