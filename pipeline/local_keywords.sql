-- The keyword index of a local index, in place of the one that was there: a bundle's, or an older version's.
-- Unlike a bundle's, it forgets a chunk without being told its words, which another version may fold otherwise.
-- Whoever writes brings the functions keyword_text(), own_text() and links(), and knows the definitions of a page's
-- reference links, which may stand in any of its chunks.

DROP TRIGGER IF EXISTS chunk_inserted;
DROP TRIGGER IF EXISTS chunk_updated;
DROP TRIGGER IF EXISTS page_updated;
DROP VIEW IF EXISTS chunk_words;
DROP TABLE chunk_fts;

CREATE VIRTUAL TABLE chunk_fts USING fts5(
    title, heading, text, links,
    content = '',
    contentless_delete = 1,
    tokenize = "{tokenizer}"
);

CREATE VIEW chunk_words AS
SELECT
    chunk.id,
    page.id AS page,
    keyword_text(page.title) AS title,
    keyword_text(
        (SELECT coalesce(group_concat(value, ' ' ORDER BY key), '') FROM json_each(chunk.heading))
    ) AS heading,
    keyword_text(own_text(chunk.text, page.url)) AS text,
    keyword_text(links(chunk.text, page.url)) AS links
FROM chunk JOIN page ON page.id = chunk.page;

INSERT INTO chunk_fts(rowid, title, heading, text, links)
SELECT id, title, heading, text, links FROM chunk_words;

CREATE TRIGGER chunk_inserted AFTER INSERT ON chunk BEGIN
    INSERT INTO chunk_fts(rowid, title, heading, text, links)
    SELECT id, title, heading, text, links FROM chunk_words WHERE id = new.id;
END;

CREATE TRIGGER chunk_updated AFTER UPDATE ON chunk BEGIN
    DELETE FROM chunk_fts WHERE rowid = old.id;
    INSERT INTO chunk_fts(rowid, title, heading, text, links)
    SELECT id, title, heading, text, links FROM chunk_words WHERE id = new.id;
END;

CREATE TRIGGER page_updated AFTER UPDATE OF title, url ON page BEGIN
    DELETE FROM chunk_fts WHERE rowid IN (SELECT id FROM chunk WHERE page = new.id);
    INSERT INTO chunk_fts(rowid, title, heading, text, links)
    SELECT id, title, heading, text, links FROM chunk_words WHERE page = new.id;
END;
