-- How far the audit has come: what is cut off at its end is found to be missing. Entries are added behind this, not behind the last
-- row there is.
CREATE TABLE audit_head (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  entries INTEGER NOT NULL,
  hash TEXT NOT NULL
) STRICT;
INSERT INTO audit_head (one, entries, hash)
SELECT 1, COALESCE(MAX(seq), 0),
  COALESCE((SELECT hash FROM audit ORDER BY seq DESC LIMIT 1),
    '0000000000000000000000000000000000000000000000000000000000000000')
FROM audit;
CREATE TRIGGER audit_head_is_not_cut BEFORE DELETE ON audit_head
BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END;
CREATE TRIGGER audit_head_goes_on BEFORE UPDATE ON audit_head WHEN NEW.entries <> OLD.entries + 1
BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END;
