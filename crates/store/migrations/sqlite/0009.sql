-- Who is shown what a run says while it works.
ALTER TABLE runs ADD COLUMN audience_json TEXT;
