-- The keyword index of a local index, in place of the one that was there: a bundle's, or an older version's.
-- Unlike a bundle's, it forgets a chunk without being told its words, which another version may fold otherwise.
-- Whoever writes brings the functions keyword_text(), own_text() and links(). Definitions of a page's reference
-- links may stand in any of its chunks: who puts one in that has some touches the others of the page again.

DROP TRIGGER IF EXISTS chunk_inserted;
DROP TRIGGER IF EXISTS chunk_updated;
DROP TRIGGER IF EXISTS page_updated;
DROP VIEW IF EXISTS chunk_words;
DROP VIEW IF EXISTS chunk_definitions;
DROP TABLE chunk_fts;

CREATE VIRTUAL TABLE chunk_fts USING fts5(
    title, heading, text, links,
    content = '',
    contentless_delete = 1,
    tokenize = "{tokenizer}"
);

CREATE VIEW chunk_definitions AS
SELECT page, group_concat(text, char(10)) AS text FROM chunk WHERE text LIKE '%]:%' GROUP BY page;

CREATE VIEW chunk_words AS
SELECT
    chunk.id,
    page.id AS page,
    keyword_text(page.title) AS title,
    keyword_text(
        (SELECT coalesce(group_concat(value, ' ' ORDER BY key), '') FROM json_each(chunk.heading))
    ) AS heading,
    keyword_text(own_text(chunk.text, page.url, defining.text)) AS text,
    keyword_text(links(chunk.text, page.url, defining.text)) AS links
FROM chunk JOIN page ON page.id = chunk.page LEFT JOIN chunk_definitions AS defining ON defining.page = page.id;

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
