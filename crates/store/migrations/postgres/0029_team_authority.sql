-- The least authority of the people a team has done anything for: its members work with no more.
ALTER TABLE teams ADD COLUMN authority TEXT NOT NULL DEFAULT 'owner';
-- Teams whose lead was asked by anybody but an owner: nothing says which of it was handed on, so nothing more is granted.
UPDATE teams SET authority = 'guest' WHERE EXISTS (SELECT 1 FROM messages m WHERE m.session_key = teams.lead_key
  AND (m.origin LIKE 'agent:%/%' OR m.meta_json LIKE '%"authority":"guest"%' OR m.meta_json LIKE '%"authority":"operator"%'
    OR m.meta_json LIKE '%authority:guest%' OR m.meta_json LIKE '%authority:operator%'));
