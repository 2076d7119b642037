-- The language in which the engine writes to the people of a conversation: what a person set with /language ('auto', 'en' or 'zh'; null:
-- the setting of the instance), and the language of the newest message that decided it.
ALTER TABLE sessions ADD COLUMN language TEXT;
ALTER TABLE sessions ADD COLUMN detected_language TEXT;
-- The language in which a sender got the pairing code.
ALTER TABLE pairings ADD COLUMN language TEXT NOT NULL DEFAULT 'en';
