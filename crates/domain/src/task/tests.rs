use super::*;

fn key(name: &str) -> SessionKey {
    SessionKey::from_parts(&AgentId::main(), &["teammate", name])
}

fn worker(name: &str, session: &str) -> TaskMember {
    TaskMember { name: name.into(), session: key(session), capabilities: vec!["rust".into()], is_lead: false }
}

fn task() -> TeamTask {
    TeamTask {
        team: TeamId::new("t"),
        no: TaskNo(1),
        subject: "Write tests".into(),
        description: "all".into(),
        active_form: Some("Writing tests".into()),
        metadata: None,
        assignee: None,
        capability: None,
        verify: None,
        state: TeamTaskState::Pending,
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

fn held_by(name: &str, session: &str) -> TeamTask {
    let lease = TaskLease { owner: name.into(), session: key(session), fencing_token: 3, until: Millis(9) };
    TeamTask { state: TeamTaskState::Claimed, lease: Some(lease), ..task() }
}

#[test]
fn claim_refusal_returns_reason() {
    let cases = [
        (task(), None),
        (TeamTask { state: TeamTaskState::Completed, ..task() }, Some("task_ended")),
        (TeamTask { state: TeamTaskState::Failed, ..task() }, Some("task_ended")),
        (held_by("bob", "b"), Some("task_taken")),
        (TeamTask { assignee: Some("bob".into()), ..task() }, Some("task_assigned")),
        (TeamTask { assignee: Some("ann".into()), ..task() }, None),
        (TeamTask { capability: Some("rust".into()), ..task() }, None),
        (TeamTask { capability: Some("law".into()), ..task() }, Some("task_capability")),
        (TeamTask { blocked_by: vec![TaskNo(7)], ..task() }, Some("task_blocked")),
    ];
    for (task, expected) in cases {
        assert_eq!(claim_refusal(&task, &worker("ann", "a")).map(|why| why.code()), expected, "{task:?}");
    }
    let blocked =
        claim_refusal(&TeamTask { blocked_by: vec![TaskNo(7), TaskNo(9)], ..task() }, &worker("ann", "a"));
    let blocked = blocked.unwrap();
    assert_eq!(blocked.blocked_by(), [TaskNo(7), TaskNo(9)]);
    assert_eq!(blocked.to_string(), "task 1 is blocked by 7, 9");
}

#[test]
fn only_claim_holder_or_lead_ends_task() {
    let lead = TaskMember { is_lead: true, ..worker("lead", "l") };
    let end = |task: &TeamTask, by: &TaskMember| check_may_end(task, by).map_err(|why| why.code());
    assert_eq!(end(&held_by("ann", "a"), &worker("ann", "a")), Ok(3));
    assert_eq!(end(&held_by("ann", "a"), &lead), Ok(3));
    assert_eq!(end(&held_by("ann", "a"), &worker("bob", "b")), Err("stale_claim"));
    assert_eq!(end(&held_by("ann", "a2"), &worker("ann", "a")), Err("stale_claim"), "an earlier life");
    assert_eq!(end(&task(), &worker("ann", "a")), Err("task_not_yours"));
    let done = TeamTask { state: TeamTaskState::Completed, ..held_by("ann", "a") };
    assert_eq!(end(&done, &lead), Err("task_ended"), "nothing ends twice");
}

#[test]
fn claimed_task_shows_active_form_as_title() {
    assert_eq!(task().display_title(), "Write tests");
    assert_eq!(held_by("ann", "a").display_title(), "Writing tests");
}

#[test]
fn task_number_may_be_given_as_text() {
    let read = |text: &str| serde_json::from_str::<TaskNo>(text).ok();
    assert_eq!(
        (read("3"), read("\"3\""), read("\"#3\"")),
        (Some(TaskNo(3)), Some(TaskNo(3)), Some(TaskNo(3)))
    );
    assert_eq!(read("\"three\""), None);
}
