-- A row that replaces another fires no trigger of deletion: it is refused before it comes to that.
CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END;
CREATE TRIGGER audit_head_is_not_replaced BEFORE INSERT ON audit_head
WHEN EXISTS (SELECT 1 FROM audit_head)
BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END;
CREATE TRIGGER message_events_are_not_replaced BEFORE INSERT ON message_events
WHEN EXISTS (SELECT 1 FROM message_events WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'events of messages are only added to'); END;
