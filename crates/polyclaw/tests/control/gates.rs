//! What each gate of the plan asks for, and the tests that hold it: all of them on the real server, and with real daemons
//! wherever an instance has to do something. The test below reads this table: a gate without a test, and a test that is
//! not there or does not run, fail it.
//! `fault` are faults of earlier control planes that this one must not have.
//!
//! | gate | asks | tests |
//! |---|---|---|
//! | 5.1 | a config with several agents becomes an instance with all of them, stopped | `import::first_generation_home_is_imported_and_runs`, `import::second_generation_home_is_imported_and_runs` |
//! | 5.2 | each account has its own token and its own people | `import::imported_accounts_keep_their_own_token_senders_and_agent` |
//! | 5.3 | what is not supported is reported and no error | `import::every_config_shape_is_imported_whole_or_refused` |
//! | 5.4, 5.6 | a name in use and a second run change nothing | `import::repeated_import_or_taken_name_changes_nothing` |
//! | 5.5 | a dry run says what the run does | `import::dry_run_import_reports_the_same_and_changes_nothing` |
//! | 5.7, 5.8 | what was brought in starts and answers | `import::first_generation_home_is_imported_and_runs`, `import::second_generation_home_is_imported_and_runs` |
//! | 5.9 | half an import is undone | `import::killed_import_is_complete_or_rolled_back`, `crud::half_created_folders_are_removed_at_server_start` |
//! | 6.1, 6.2, 6.12 | one that was made is stopped; start makes a process, a pid and a status; stop leaves none | `lifecycle::instance_is_created_started_stopped_and_restarted` |
//! | 6.3 | a pid of somebody else is never signalled | `lifecycle::foreign_process_in_pid_file_is_never_signalled` |
//! | 6.4 | a dead pid is cleared by start | `lifecycle::stale_pid_file_does_not_block_start_or_stop` |
//! | 6.5 | a held lock refuses start, stop and restart | `lifecycle::lifecycle_calls_are_refused_while_lock_is_held` |
//! | 6.6 | start moves a full log aside | `logs::start_appends_to_log_and_rotates_a_full_one`, `logs::daemon_rotates_its_own_full_log` |
//! | 6.7 | the end of a log, and that there is none | `logs::log_is_read_by_tail_by_page_and_as_download` |
//! | 6.8, 6.9 | stop when stopped, unknown names | `lifecycle::invalid_lifecycle_calls_return_specific_codes` |
//! | 6.10 | several are listed, each with its status | `supervisor::instances_are_listed_with_their_actual_status` |
//! | 6.11 | EPERM counts as alive | `lifecycle::unsignalable_process_in_pid_file_counts_as_alive` |
//! | 6.13 | a start that fails leaves nothing | `lifecycle::failed_start_returns_log_lines_and_leaves_no_process`, `lifecycle::daemon_that_cannot_write_its_pid_file_exits` |
//! | 7.1 | a crash is seen in time | `supervisor::crashed_instance_is_detected_and_restarted`, `supervisor::crash_under_restart_policy_never_is_reported_not_restarted` |
//! | 7.2 | the server's restart loses no instance, and the registry follows what runs | `supervisor::next_server_adopts_instances_of_a_killed_server`, `supervisor::manually_started_daemon_is_adopted_and_stopped_by_archive`, `supervisor::instance_that_died_without_server_is_restarted` |
//! | 7.3 | HTTP does what the command line does | `commands::every_instance_verb_works_from_the_command_line`, `logs::command_line_follows_log_over_rotation_and_saves_it`, `config::command_line_reads_and_changes_configs`, `messages::command_line_manages_routing_rules_and_messages`, `import::command_line_imports_with_and_without_control_plane` |
//! | 7.4 | SIGTERM ends it in time, children stay | `supervisor::server_shutdown_leaves_instances_running`, `supervisor::server_shutdown_does_not_wait_for_pending_calls` |
//! | 7.5.1 | details: build, config, persona, channels, models, secrets masked | `observe::instance_details_show_everything_except_secrets` |
//! | 7.5.2 | the last tasks in a stable order, by state, channel and time | `observe::tasks_and_usage_come_from_the_instance`, `observe::tasks_are_filtered_by_state_channel_and_time` |
//! | 7.5.3 | usage, with what is unknown | `observe::tasks_and_usage_come_from_the_instance` |
//! | 7.5.4 | logs by tail, page and download | `logs::log_is_read_by_tail_by_page_and_as_download` |
//! | 7.5.5 | no secret in an answer, a frame, a log or a list | `canary::no_secret_appears_in_answers_or_frames_or_logs`, `observe::instance_details_show_everything_except_secrets` |
//! | 8.1 | a config is read, written and compared | `config::config_is_read_diffed_and_written_with_etag_and_masks`, `config::missing_config_and_unknown_instance_have_different_codes` |
//! | 8.2 | who is late is told | `config::one_of_a_hundred_config_writers_wins_each_version` |
//! | 8.3 | what is wrong is refused before it is written | `config::config_is_read_diffed_and_written_with_etag_and_masks`, `config::running_instance_reloads_config_or_keeps_the_old_one` |
//! | 8.4 | a restart picks changes up | `config::running_instance_reloads_config_or_keeps_the_old_one`, `doors::changed_port_is_validated_and_applies_after_restart` |
//! | 10.1.1 | one sends, the other receives and acknowledges | `messages_live::agent_delegates_to_another_instance_and_uses_the_result`, `messages::gate_1_message_is_sent_received_and_acknowledged_once`, `messages_daemons::killed_daemons_run_each_task_once_and_acknowledge_after_turn` |
//! | 10.1.2 | the same key is one message, and one turn | `messages::gate_2_repeated_idempotency_key_returns_the_same_message`, `crowds::concurrent_sends_with_one_idempotency_key_create_one_message`, `messages_daemons::killed_daemons_run_each_task_once_and_acknowledge_after_turn` |
//! | 10.1.3 | hops | `messages::gate_3_message_over_the_hop_limit_is_refused`, `messages_live::agents_forwarding_messages_stop_before_the_eighth_hop` |
//! | 10.1.4 | rules | `messages::gate_4_message_without_routing_rule_is_refused_and_not_stored`, `messages_live::instance_tools_need_config_entry_and_routing_rule` |
//! | 10.1.5 | dead letters | `messages::gate_5_message_out_of_retries_or_expired_is_a_dead_letter`, `messages_live::message_that_kills_its_daemon_is_dead_lettered_and_replayable` |
//! | 10.1.6 | size | `messages::gate_6_too_large_payload_is_refused`, `messages_live::agent_messages_are_size_limited_and_redacted` |
//! | 10.1.7 | secrets are not kept | `messages::gate_7_secrets_are_redacted_before_storing`, `messages::secrets_of_the_sender_are_redacted_in_its_messages`, `messages_live::agent_messages_are_size_limited_and_redacted` |
//! | 10.2.1 | boxes, page by page | `messages_seen::gate_1_messages_of_an_instance_are_paginated_by_direction` |
//! | 10.2.2 | a chain in order | `messages_seen::gate_2_correlated_messages_are_ordered_and_filters_work` |
//! | 10.2.3 | dead letters are listed and sent again | `messages_seen::gate_3_dead_letters_are_listed_and_replayed` |
//! | 10.2.4 | the whole history | `messages_seen::gate_4_every_event_of_a_message_is_recorded` |
//! | 10.2.5 | no secret anywhere | `messages_seen::gate_5_no_secret_appears_in_answers_frames_files_or_logs` |
//! | 10.2.6 | events are only added to | `messages_seen::gate_6_message_events_cannot_be_changed_or_deleted` |
//! | 13.1.1 | what is made can be started | `crud::new_instance_has_readable_config_and_own_folders`, `lifecycle::instance_is_created_started_stopped_and_restarted` |
//! | 13.1.2 | archive goes by what runs, and stops it | `supervisor::manually_started_daemon_is_adopted_and_stopped_by_archive`, `crud::instance_is_archived_then_unarchived_or_deleted` |
//! | 13.1.3 | unarchive, unless the name is taken | `crud::instance_is_archived_then_unarchived_or_deleted`, `crud::ambiguous_name_of_archived_instances_is_refused` |
//! | 13.1.4 | a clone is on its own, without access | `crud::clone_copies_files_without_tokens_or_sessions` |
//! | 13.1.5 | only archived ones are deleted, and messages stay | `crud::instance_is_archived_then_unarchived_or_deleted`, `messages_seen::deleting_an_instance_keeps_messages_and_removes_rules` |
//! | 13.1.6 | names | `crud::refused_instance_creation_leaves_nothing_behind` |
//! | 13.1.7 | ports | `crud::ports_are_assigned_once_and_invalid_ones_refused`, `crud::create_without_free_port_asks_for_a_port`, `crowds::concurrent_creates_succeed_once_and_name_the_conflict` |
//! | 14.1 | an upgrade, with the token | `sockets::sockets_need_a_token_and_close_at_server_shutdown` |
//! | 14.2, 14.3, 14.4, 14.5, 14.6 | a snapshot, then starts, new ones and archived ones, and archived ones shown or not | `sockets::instance_socket_sends_snapshot_then_changes_within_a_second` |
//! | 14.7 | who falls behind is shown everything anew | `sockets::stuck_and_dead_readers_do_not_delay_two_hundred_others`, `messages_sockets::lagging_message_socket_gets_a_new_snapshot` |
//! | 14.8, 14.9, 14.10 | lines before, new lines, rotation | `sockets::log_socket_streams_new_lines_and_rotation` |
//! | 14.11 | an unknown instance: an error, then 4404 | `codes::invalid_socket_parameters_close_4400_and_unknown_instances_4404` |
//! | 14.12, 14.13, 14.19 | messages: a snapshot, then events, never what is said | `messages_sockets::message_socket_streams_events_without_payloads` |
//! | 14.14, 14.15 | messages of one instance, of one correlation | `messages_sockets::message_socket_filters_by_instance_or_correlation` |
//! | 14.16, 14.17 | who pings stays, who is silent is let go | `codes::idle_socket_is_closed_and_pinging_one_stays_open` |
//! | 14.18 | the server's end closes with a frame | `sockets::sockets_need_a_token_and_close_at_server_shutdown`, `supervisor::server_shutdown_does_not_wait_for_pending_calls` |
//! | 14.20 | all of it within a second | `sockets::instance_socket_sends_snapshot_then_changes_within_a_second`, `sockets::log_socket_streams_new_lines_and_rotation`, `messages_sockets::message_socket_streams_events_without_payloads` |
//! | 14.21 | the calls are there as before | `access::every_documented_route_requires_token_and_scope` |
//! | fault.1 | children are not reaped | `lifecycle::instance_is_created_started_stopped_and_restarted`, `supervisor::crash_under_restart_policy_never_is_reported_not_restarted` |
//! | fault.2 | two are handed one message | `crowds::concurrent_fetches_never_return_the_same_message` |
//! | fault.3 | answers are answered without end | `messages_live::late_response_reaches_asking_session_and_gets_no_response`, `messages_live::agents_forwarding_messages_stop_before_the_eighth_hop` |
//! | fault.4 | a sender is who it says; anybody gets in | `messages_seen::message_routes_enforce_scopes_and_instance_tokens`, `access::missing_token_and_foreign_host_or_origin_are_refused`, `access::no_token_option_is_refused_off_loopback` |
//! | fault.5 | a namesake gets the messages of another | `messages_seen::deleting_an_instance_keeps_messages_and_removes_rules`, `messages_seen::new_instance_does_not_inherit_messages_of_archived_namesake` |
//! | fault.6 | unarchive takes all of a name, and a port that is taken | `crud::ambiguous_name_of_archived_instances_is_refused`, `crud::instance_is_archived_then_unarchived_or_deleted` |
//! | fault.7 | who comes second is told the wrong reason, or 500 | `crowds::concurrent_creates_succeed_once_and_name_the_conflict`, `crowds::concurrent_sends_with_one_idempotency_key_create_one_message` |
//! | fault.8 | any port is taken as it is | `crud::ports_are_assigned_once_and_invalid_ones_refused`, `lifecycle::start_on_a_port_in_use_is_refused`, `doors::changed_port_is_validated_and_applies_after_restart` |
//! | fault.9 | what happens in one second has no order | `messages_seen::gate_1_messages_of_an_instance_are_paginated_by_direction`, `messages_seen::gate_4_every_event_of_a_message_is_recorded`, `observe::tasks_and_usage_come_from_the_instance` |
//! | fault.10 | secrets in nested values and in sentences stay | `messages::gate_7_secrets_are_redacted_before_storing` |
//! | fault.11 | nobody writes tasks and usage; retention, persona and build are not told | `observe::tasks_and_usage_come_from_the_instance`, `observe::instance_details_show_everything_except_secrets`, `logs::log_is_read_by_tail_by_page_and_as_download` |
//! | fault.12 | events can be changed, and some are missing | `messages_seen::gate_6_message_events_cannot_be_changed_or_deleted`, `messages_seen::gate_4_every_event_of_a_message_is_recorded` |
//! | fault.13 | the fingerprint of a secret shows half of it, or is a panic | `config::fingerprint_shows_four_characters_of_long_secrets_only` |
//! | fault.14 | an archive lets others in between; one that does not start is started all the time | `lifecycle::instance_being_archived_cannot_be_started`, `messages_seen::failing_auto_start_is_retried_with_backoff`, `messages_seen::auto_start_rule_starts_a_stopped_recipient` |
//! | fault.15 | a start overwrites the last log, and pages shift | `logs::start_appends_to_log_and_rotates_a_full_one`, `logs::log_is_read_by_tail_by_page_and_as_download` |

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// How many gates each phase has, and how many faults there are. Phase 5 is the import; its last is that a crash leaves
/// nothing. That the suite itself is there and passes, which 13.1 asks for too, is no row.
const GATES: [(&str, usize); 10] = [
    ("5", 9),
    ("6", 13),
    ("7", 4),
    ("7.5", 5),
    ("8", 4),
    ("10.1", 7),
    ("10.2", 6),
    ("13.1", 7),
    ("14", 21),
    ("fault", 15),
];

struct Row {
    gates: Vec<&'static str>,
    /// By module and name.
    tests: Vec<(&'static str, &'static str)>,
}

fn rows() -> Vec<Row> {
    let lines = include_str!("gates.rs").lines().filter_map(|line| line.strip_prefix("//! | "));
    let row = |line: &'static str| {
        let mut cells = line.split(" | ");
        let (gates, tests) = (cells.next().unwrap(), cells.nth(1).unwrap());
        let tests = tests.split('`').filter_map(|name| name.split_once("::")).collect();
        Row { gates: gates.split(", ").collect(), tests }
    };
    lines.skip(1).map(row).collect()
}

/// The tests of a module, by name. None of them may be left out of a run.
fn tests_of(module: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control");
    let text = fs::read_to_string(folder.join(format!("{module}.rs"))).unwrap();
    assert!(!text.lines().any(|line| line.trim_start().starts_with("#[ignore")), "{module} leaves some out");
    assert!(text.contains("crate::plane::"), "{module} has no server");
    let names =
        text.split("#[test]\n").skip(1).filter_map(|rest| rest.split_once("fn ")?.1.split('(').next());
    names.map(str::to_owned).collect()
}

#[test]
fn every_gate_has_a_test_that_runs() {
    let rows = rows();
    let mut lines: Vec<String> = rows.iter().flat_map(|row| &row.gates).map(ToString::to_string).collect();
    let asked = GATES.iter().flat_map(|(phase, count)| (1..=*count).map(move |n| format!("{phase}.{n}")));
    let mut asked: Vec<String> = asked.collect();
    lines.sort();
    asked.sort();
    assert_eq!(lines, asked, "each gate has one row");
    for Row { gates, tests } in rows {
        assert!(!tests.is_empty(), "{gates:?} has no test");
        for (module, name) in tests {
            assert!(tests_of(module).contains(name), "{gates:?}: there is no test {module}::{name}");
        }
    }
}
