-- Announces that an earlier version held: the reason has the name that the error code has now.
UPDATE runs SET held_code = 'autonomous_turns_exhausted' WHERE held_code = 'automatic_budget_spent';
