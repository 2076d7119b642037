use super::*;

fn key(name: &str) -> SessionKey {
    SessionKey::of(&AgentId::main(), &["teammate", name])
}

fn worker(name: &str, session: &str) -> Worker {
    Worker { name: name.into(), session: key(session), capabilities: vec!["rust".into()], is_lead: false }
}

fn task() -> Task {
    Task {
        team: TeamId::new("t"),
        no: TaskNo(1),
        subject: "Write tests".into(),
        description: "all".into(),
        active_form: Some("Writing tests".into()),
        metadata: None,
        assignee: None,
        capability: None,
        verify: None,
        state: TaskState::Pending,
        lease: None,
        ended_by: None,
        summary: None,
        note: None,
        artifacts: vec![],
        needs: vec![],
        blocked_by: vec![],
        created_by: "lead".into(),
        created_at: Millis(0),
        claimed_at: None,
        ended_at: None,
    }
}

fn held_by(name: &str, session: &str) -> Task {
    let lease = Lease { owner: name.into(), session: key(session), fence: 3, until: Millis(9) };
    Task { state: TaskState::Claimed, lease: Some(lease), ..task() }
}

#[test]
fn a_task_says_why_it_can_not_be_taken() {
    let cases = [
        (task(), None),
        (Task { state: TaskState::Completed, ..task() }, Some("task_ended")),
        (Task { state: TaskState::Failed, ..task() }, Some("task_ended")),
        (held_by("bob", "b"), Some("task_taken")),
        (Task { assignee: Some("bob".into()), ..task() }, Some("task_assigned")),
        (Task { assignee: Some("ann".into()), ..task() }, None),
        (Task { capability: Some("rust".into()), ..task() }, None),
        (Task { capability: Some("law".into()), ..task() }, Some("task_capability")),
        (Task { blocked_by: vec![TaskNo(7)], ..task() }, Some("task_blocked")),
    ];
    for (task, expected) in cases {
        assert_eq!(why_not(&task, &worker("ann", "a")).map(|why| why.code()), expected, "{task:?}");
    }
    let blocked = why_not(&Task { blocked_by: vec![TaskNo(7), TaskNo(9)], ..task() }, &worker("ann", "a"));
    let blocked = blocked.unwrap();
    assert_eq!(blocked.blocked_by(), [TaskNo(7), TaskNo(9)]);
    assert_eq!(blocked.to_string(), "task 1 waits for 7, 9");
}

#[test]
fn only_the_session_that_holds_a_task_or_the_lead_ends_it() {
    let lead = Worker { is_lead: true, ..worker("lead", "l") };
    let end = |task: &Task, by: &Worker| may_end(task, by).map_err(|why| why.code());
    assert_eq!(end(&held_by("ann", "a"), &worker("ann", "a")), Ok(3));
    assert_eq!(end(&held_by("ann", "a"), &lead), Ok(3));
    assert_eq!(end(&held_by("ann", "a"), &worker("bob", "b")), Err("task_late"));
    assert_eq!(end(&held_by("ann", "a2"), &worker("ann", "a")), Err("task_late"), "an earlier life");
    assert_eq!(end(&task(), &worker("ann", "a")), Err("task_not_yours"));
    let done = Task { state: TaskState::Completed, ..held_by("ann", "a") };
    assert_eq!(end(&done, &lead), Err("task_ended"), "nothing ends twice");
}

#[test]
fn a_task_is_called_by_what_is_done_while_somebody_does_it() {
    assert_eq!(task().title(), "Write tests");
    assert_eq!(held_by("ann", "a").title(), "Writing tests");
}

#[test]
fn a_number_may_be_written_as_text() {
    let read = |text: &str| serde_json::from_str::<TaskNo>(text).ok();
    assert_eq!(
        (read("3"), read("\"3\""), read("\"#3\"")),
        (Some(TaskNo(3)), Some(TaskNo(3)), Some(TaskNo(3)))
    );
    assert_eq!(read("\"three\""), None);
}
