//! What each gate of the plan asks for, and the tests that hold it: all of them on the real server, and with real daemons
//! wherever an instance has to do something. The test below reads this table: a gate without a test, and a test that is
//! not there or does not run, fail it.
//! `fault` are faults of earlier control planes that this one must not have.
//!
//! | gate | asks | tests |
//! |---|---|---|
//! | 5.1 | a config with several agents becomes an instance with all of them, stopped | `import::a_home_of_the_first_generation_becomes_an_instance_that_runs`, `import::a_home_of_the_second_generation_becomes_an_instance_that_runs` |
//! | 5.2 | each account has its own token and its own people | `import::each_account_comes_with_its_own_token_its_own_people_and_its_own_agent` |
//! | 5.3 | what is not supported is reported and no error | `import::every_shape_is_brought_in_or_refused_whole` |
//! | 5.4, 5.6 | a name in use and a second run change nothing | `import::a_second_run_and_a_name_in_use_change_nothing` |
//! | 5.5 | a dry run says what the run does | `import::a_dry_run_says_what_a_run_does_and_does_nothing` |
//! | 5.7, 5.8 | what was brought in starts and answers | `import::a_home_of_the_first_generation_becomes_an_instance_that_runs`, `import::a_home_of_the_second_generation_becomes_an_instance_that_runs` |
//! | 5.9 | half an import is undone | `import::an_import_that_is_killed_is_whole_or_gone`, `crud::a_folder_that_was_being_made_when_the_server_died_is_swept_away` |
//! | 6.1, 6.2, 6.12 | one that was made is stopped; start makes a process, a pid and a status; stop leaves none | `lifecycle::an_instance_is_made_started_stopped_and_started_again` |
//! | 6.3 | a pid of somebody else is never signalled | `lifecycle::a_foreign_process_with_our_pid_is_never_signalled` |
//! | 6.4 | a dead pid is cleared by start | `lifecycle::the_pid_of_a_dead_process_stands_in_nobodys_way` |
//! | 6.5 | a held lock refuses start, stop and restart | `lifecycle::an_action_under_way_refuses_the_next` |
//! | 6.6 | start moves a full log aside | `logs::a_start_goes_on_in_the_log_that_is_there_and_begins_another_where_it_is_full`, `logs::a_daemon_moves_its_own_log_aside_when_it_is_full` |
//! | 6.7 | the end of a log, and that there is none | `logs::a_log_is_read_by_its_end_by_page_and_whole` |
//! | 6.8, 6.9 | stop when stopped, unknown names | `lifecycle::what_can_not_be_done_says_why` |
//! | 6.10 | several are listed, each with its status | `supervisor::a_fleet_is_listed_with_each_instance_as_it_is` |
//! | 6.11 | EPERM counts as alive | `lifecycle::a_process_that_is_closed_to_us_counts_as_alive_and_is_left_alone` |
//! | 6.13 | a start that fails leaves nothing | `lifecycle::a_start_that_fails_says_what_the_log_said_and_leaves_nothing`, `lifecycle::a_daemon_that_can_not_write_its_pid_down_is_not_left_running` |
//! | 7.1 | a crash is seen in time | `supervisor::a_crash_is_seen_and_mended`, `supervisor::the_policy_decides_and_a_crash_that_is_left_alone_is_told` |
//! | 7.2 | the server's restart loses no instance, and the registry follows what runs | `supervisor::the_next_server_adopts_what_the_killed_one_left`, `supervisor::what_runs_although_nobody_asked_for_it_is_adopted_and_an_archive_stops_it`, `supervisor::what_died_while_no_server_was_there_is_started_again` |
//! | 7.3 | HTTP does what the command line does | `commands::every_verb_works_from_the_command_line`, `logs::the_command_line_goes_on_with_a_log_over_its_rotation_and_saves_the_whole_of_it`, `config::the_command_line_reads_and_changes_configs_too`, `messages::rules_and_messages_are_there_from_the_command_line`, `import::the_command_line_brings_in_with_and_without_a_control_plane` |
//! | 7.4 | SIGTERM ends it in time, children stay | `supervisor::the_server_ends_in_good_order_and_leaves_its_instances`, `supervisor::the_server_ends_while_something_is_under_way` |
//! | 7.5.1 | details: build, config, persona, channels, models, secrets masked | `observe::details_show_everything_but_secrets` |
//! | 7.5.2 | the last tasks in a stable order, by state, channel and time | `observe::tasks_and_usage_come_from_the_instance`, `observe::tasks_are_found_by_state_channel_and_time` |
//! | 7.5.3 | usage, with what is unknown | `observe::tasks_and_usage_come_from_the_instance` |
//! | 7.5.4 | logs by tail, page and download | `logs::a_log_is_read_by_its_end_by_page_and_whole` |
//! | 7.5.5 | no secret in an answer, a frame, a log or a list | `canary::no_answer_no_log_and_no_list_has_a_secret_in_it`, `observe::details_show_everything_but_secrets` |
//! | 8.1 | a config is read, written and compared | `config::a_config_is_read_compared_changed_and_refused`, `config::a_config_that_is_not_there_is_told_from_an_instance_that_is_not` |
//! | 8.2 | who is late is told | `config::of_a_hundred_writers_one_wins_each_version` |
//! | 8.3 | what is wrong is refused before it is written | `config::a_config_is_read_compared_changed_and_refused`, `config::a_running_instance_takes_a_change_up_or_keeps_the_old` |
//! | 8.4 | a restart picks changes up | `config::a_running_instance_takes_a_change_up_or_keeps_the_old`, `doors::another_port_waits_for_a_restart_and_is_one_an_instance_can_have` |
//! | 10.1.1 | one sends, the other receives and acknowledges | `messages_live::an_agent_delegates_to_another_instance_and_goes_on_with_the_result`, `messages::gate_1_a_message_is_sent_received_and_acknowledged`, `messages_daemons::ten_daemons_take_every_task_up_once_and_acknowledge_after_the_turn_whoever_is_killed` |
//! | 10.1.2 | the same key is one message, and one turn | `messages::gate_2_the_same_key_is_the_same_message`, `crowds::a_key_makes_one_message_however_many_send_it_at_once`, `messages_daemons::ten_daemons_take_every_task_up_once_and_acknowledge_after_the_turn_whoever_is_killed` |
//! | 10.1.3 | hops | `messages::gate_3_what_went_through_too_many_is_refused`, `messages_live::agents_that_pass_everything_on_are_stopped_before_the_eighth_hop` |
//! | 10.1.4 | rules | `messages::gate_4_what_no_rule_allows_is_refused_before_it_is_kept`, `messages_live::an_agent_that_is_not_named_has_no_such_tool_and_a_route_that_is_not_allowed_is_said` |
//! | 10.1.5 | dead letters | `messages::gate_5_what_fails_too_often_is_a_dead_letter`, `messages_live::what_a_daemon_dies_over_too_often_is_a_dead_letter_and_can_be_sent_again` |
//! | 10.1.6 | size | `messages::gate_6_a_payload_that_is_too_large_is_refused`, `messages_live::what_an_agent_writes_is_refused_where_it_is_too_large_and_kept_without_its_secrets` |
//! | 10.1.7 | secrets are not kept | `messages::gate_7_secrets_are_taken_out_before_anything_is_kept`, `messages::what_a_sender_has_of_its_own_is_taken_out_of_its_messages`, `messages_live::what_an_agent_writes_is_refused_where_it_is_too_large_and_kept_without_its_secrets` |
//! | 10.2.1 | boxes, page by page | `messages_seen::gate_1_the_boxes_of_an_instance_are_read_page_by_page` |
//! | 10.2.2 | a chain in order | `messages_seen::gate_2_a_chain_is_shown_in_order_and_messages_are_found_by_what_is_known` |
//! | 10.2.3 | dead letters are listed and sent again | `messages_seen::gate_3_dead_letters_are_found_and_sent_again` |
//! | 10.2.4 | the whole history | `messages_seen::gate_4_everything_that_happened_to_a_message_is_there` |
//! | 10.2.5 | no secret anywhere | `messages_seen::gate_5_no_secret_is_in_any_answer_frame_file_or_log` |
//! | 10.2.6 | events are only added to | `messages_seen::gate_6_events_can_not_be_changed_or_removed` |
//! | 13.1.1 | what is made can be started | `crud::a_new_instance_has_a_config_that_can_be_read_and_folders_of_its_own`, `lifecycle::an_instance_is_made_started_stopped_and_started_again` |
//! | 13.1.2 | archive goes by what runs, and stops it | `supervisor::what_runs_although_nobody_asked_for_it_is_adopted_and_an_archive_stops_it`, `crud::an_instance_is_put_aside_taken_back_and_removed_in_two_steps` |
//! | 13.1.3 | unarchive, unless the name is taken | `crud::an_instance_is_put_aside_taken_back_and_removed_in_two_steps`, `crud::of_several_archived_namesakes_none_is_taken_by_chance` |
//! | 13.1.4 | a clone is on its own, without access | `crud::a_clone_has_the_files_and_none_of_the_access` |
//! | 13.1.5 | only archived ones are deleted, and messages stay | `crud::an_instance_is_put_aside_taken_back_and_removed_in_two_steps`, `messages_seen::messages_outlive_their_instances_and_rules_do_not` |
//! | 13.1.6 | names | `crud::what_can_not_be_made_leaves_nothing_behind` |
//! | 13.1.7 | ports | `crud::ports_are_given_in_order_and_never_twice`, `crud::where_no_port_is_left_one_has_to_be_named`, `crowds::a_name_a_port_and_a_rule_are_given_once_and_each_refusal_says_which_is_taken` |
//! | 14.1 | an upgrade, with the token | `sockets::sockets_need_the_token_and_are_closed_when_the_server_ends` |
//! | 14.2, 14.3, 14.4, 14.5, 14.6 | a snapshot, then starts, new ones and archived ones, and archived ones shown or not | `sockets::a_reader_sees_what_there_is_and_then_every_change_within_a_second` |
//! | 14.7 | who falls behind is shown everything anew | `sockets::two_hundred_readers_are_told_while_some_are_stuck_and_one_is_dead`, `messages_sockets::a_reader_that_falls_behind_is_shown_everything_anew` |
//! | 14.8, 14.9, 14.10 | lines before, new lines, rotation | `sockets::log_lines_are_told_as_they_are_written_and_rotation_too` |
//! | 14.11 | an unknown instance: an error, then 4404 | `codes::what_can_not_be_read_is_closed_with_4400_and_what_is_not_there_with_4404` |
//! | 14.12, 14.13, 14.19 | messages: a snapshot, then events, never what is said | `messages_sockets::a_reader_sees_what_happened_and_what_happens_and_never_what_is_said` |
//! | 14.14, 14.15 | messages of one instance, of one correlation | `messages_sockets::a_reader_of_one_instance_or_correlation_is_told_of_that_alone` |
//! | 14.16, 14.17 | who pings stays, who is silent is let go | `codes::who_says_nothing_for_too_long_is_let_go_and_who_pings_is_not` |
//! | 14.18 | the server's end closes with a frame | `sockets::sockets_need_the_token_and_are_closed_when_the_server_ends`, `supervisor::the_server_ends_while_something_is_under_way` |
//! | 14.20 | all of it within a second | `sockets::a_reader_sees_what_there_is_and_then_every_change_within_a_second`, `sockets::log_lines_are_told_as_they_are_written_and_rotation_too`, `messages_sockets::a_reader_sees_what_happened_and_what_happens_and_never_what_is_said` |
//! | 14.21 | the calls are there as before | `access::every_route_of_the_document_asks_for_the_token_and_for_enough_of_it` |
//! | fault.1 | children are not reaped | `lifecycle::an_instance_is_made_started_stopped_and_started_again`, `supervisor::the_policy_decides_and_a_crash_that_is_left_alone_is_told` |
//! | fault.2 | two are handed one message | `crowds::no_message_is_handed_to_two_who_ask_at_once` |
//! | fault.3 | answers are answered without end | `messages_live::an_answer_that_nobody_waits_for_reaches_the_session_that_asked_and_is_not_answered`, `messages_live::agents_that_pass_everything_on_are_stopped_before_the_eighth_hop` |
//! | fault.4 | a sender is who it says; anybody gets in | `messages_seen::scopes_and_instances_own_tokens_open_what_is_theirs_and_nothing_else`, `access::nobody_gets_in_without_a_token_from_elsewhere_or_under_another_name`, `access::off_loopback_a_token_is_always_asked_for` |
//! | fault.5 | a namesake gets the messages of another | `messages_seen::messages_outlive_their_instances_and_rules_do_not`, `messages_seen::a_namesake_of_an_archived_instance_has_neither_its_messages_nor_its_rules` |
//! | fault.6 | unarchive takes all of a name, and a port that is taken | `crud::of_several_archived_namesakes_none_is_taken_by_chance`, `crud::an_instance_is_put_aside_taken_back_and_removed_in_two_steps` |
//! | fault.7 | who comes second is told the wrong reason, or 500 | `crowds::a_name_a_port_and_a_rule_are_given_once_and_each_refusal_says_which_is_taken`, `crowds::a_key_makes_one_message_however_many_send_it_at_once` |
//! | fault.8 | any port is taken as it is | `crud::ports_are_given_in_order_and_never_twice`, `lifecycle::a_port_that_is_in_use_is_told_from_one_that_is_taken`, `doors::another_port_waits_for_a_restart_and_is_one_an_instance_can_have` |
//! | fault.9 | what happens in one second has no order | `messages_seen::gate_1_the_boxes_of_an_instance_are_read_page_by_page`, `messages_seen::gate_4_everything_that_happened_to_a_message_is_there`, `observe::tasks_and_usage_come_from_the_instance` |
//! | fault.10 | secrets in nested values and in sentences stay | `messages::gate_7_secrets_are_taken_out_before_anything_is_kept` |
//! | fault.11 | nobody writes tasks and usage; retention, persona and build are not told | `observe::tasks_and_usage_come_from_the_instance`, `observe::details_show_everything_but_secrets`, `logs::a_log_is_read_by_its_end_by_page_and_whole` |
//! | fault.12 | events can be changed, and some are missing | `messages_seen::gate_6_events_can_not_be_changed_or_removed`, `messages_seen::gate_4_everything_that_happened_to_a_message_is_there` |
//! | fault.13 | the fingerprint of a secret shows half of it, or is a panic | `config::a_fingerprint_tells_little_of_a_long_secret_and_nothing_of_a_short_one` |
//! | fault.14 | an archive lets others in between; one that does not start is started all the time | `lifecycle::what_is_being_archived_can_not_be_started_meanwhile`, `messages_seen::one_that_does_not_start_is_tried_again_later_and_later_however_much_is_sent_to_it`, `messages_seen::a_message_starts_its_recipient_where_its_rule_says_so` |
//! | fault.15 | a start overwrites the last log, and pages shift | `logs::a_start_goes_on_in_the_log_that_is_there_and_begins_another_where_it_is_full`, `logs::a_log_is_read_by_its_end_by_page_and_whole` |

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
