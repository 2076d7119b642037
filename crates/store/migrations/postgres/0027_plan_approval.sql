-- A member that may only read until its lead approves its plan: 'required' or 'submitted'; null where it may work.
ALTER TABLE members ADD COLUMN plan_status TEXT;
-- The request that waits for the lead's answer.
ALTER TABLE members ADD COLUMN plan_request_id TEXT;
