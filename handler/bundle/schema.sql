-- rag.db. Pages and chunks are numbered from 1, without gaps, by collection, then path, then ordinal: a
-- collection is one range of chunk ids, and a page another inside it.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE page (
    id INTEGER PRIMARY KEY,
    collection TEXT NOT NULL,
    path TEXT NOT NULL,          -- the page's file in its source
    url TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    canonical INTEGER NOT NULL REFERENCES page(id), -- the page whose text this one repeats; mostly itself
    title_vector BLOB NOT NULL   -- of unit length, little-endian float32
);

CREATE TABLE chunk (
    id INTEGER PRIMARY KEY,
    page INTEGER NOT NULL REFERENCES page(id),
    ordinal INTEGER NOT NULL,    -- from 0 within the page
    heading TEXT NOT NULL,       -- a JSON list, outermost first
    anchor TEXT NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (page, ordinal)
);

-- Holds the text as handler/bundle/terms.py folds it, links to pages of the same site apart from the rest
-- (handler/bundle/links.py). Without content of its own: what it would repeat of `chunk` is a third of the file,
-- and a text folded otherwise than asked for finds nothing.
CREATE VIRTUAL TABLE chunk_fts USING fts5(
    title, heading, text, links,
    content = '',
    tokenize = "{tokenizer}"
);

-- Unit vectors: L2 distance d and cosine c are one thing, d * d = 2 - 2 * c.
CREATE VIRTUAL TABLE chunk_vec USING vec0(
    chunk INTEGER PRIMARY KEY,
    embedding float[{dim}],
    collection TEXT
);
