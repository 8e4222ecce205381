-- A table in memory, filled, indexed, joined and deleted from.
CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, part INTEGER, price REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150000)
INSERT INTO items SELECT i, 'item ' || i || hex(i * 7919), i % 997, i * 0.25 FROM n;
CREATE INDEX by_part ON items (part, name);
CREATE TABLE parts AS SELECT part, count(*) AS items, group_concat(name) AS names FROM items GROUP BY part;
UPDATE items SET name = upper(name) || part WHERE id % 3 = 0;
CREATE TABLE found AS SELECT a.name, length(b.names) AS size FROM items a JOIN parts b ON a.part = b.part ORDER BY a.name DESC;
DELETE FROM items WHERE id % 2 = 0;
