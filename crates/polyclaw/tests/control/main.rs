//! The control plane: the real server, real instances as its children. What each gate of the plan asks for, and where it
//! is held:
//!
//! | gate | asks | test |
//! |---|---|---|
//! | 5.1, 5.2, 5.7 | several agents with their own accounts, a config that starts | `import::a_home_of_either_generation_becomes_an_instance_that_runs` |
//! | 5.3 | what is not supported is reported | `import::every_shape_is_brought_in_or_refused_whole` |
//! | 5.4, 5.6 | a name in use and a second run change nothing | `import::a_second_run_and_a_name_in_use_change_nothing` |
//! | 5.5 | a dry run says what the run does | `import::a_dry_run_says_what_a_run_does_and_does_nothing` |
//! | 5, crash | half an import is undone | `import::an_import_that_is_killed_is_whole_or_gone` |
//! | 6.1, 6.2, 6.12 | start makes a process, a pid and a status; stop leaves none | `lifecycle::an_instance_is_made_started_stopped_and_started_again` |
//! | 6.3 | a pid of somebody else is never signalled | `lifecycle::a_foreign_process_with_our_pid_is_never_signalled` |
//! | 6.4 | a dead pid is cleared by start | `supervisor::a_crash_is_seen_and_mended` |
//! | 6.5 | a held lock refuses start, stop and restart | `lifecycle::an_action_under_way_refuses_the_next` |
//! | 6.6, 6.7 | rotation, tail | `logs::a_log_is_read_by_its_end_by_page_and_whole` |
//! | 6.8, 6.9 | stop when stopped, unknown names | `lifecycle::what_can_not_be_done_says_why` |
//! | 6.11 | EPERM counts as alive | `lifecycle::a_process_that_is_closed_to_us_counts_as_alive_and_is_left_alone` |
//! | 6.13 | a start that fails leaves nothing | `lifecycle::a_start_that_fails_says_what_the_log_said_and_leaves_nothing`, `lifecycle::a_daemon_that_can_not_write_its_pid_down_is_not_left_running` |
//! | 7.1 | a crash is seen in time | `supervisor::a_crash_is_seen_and_mended` |
//! | 7.2 | the server's restart loses no instance | `supervisor::the_next_server_adopts_what_the_killed_one_left` |
//! | 7.3 | HTTP does what the command line does | `commands::every_verb_works_from_the_command_line` |
//! | 7.4 | SIGTERM ends it in time, children stay | `supervisor::the_server_ends_in_good_order_and_leaves_its_instances` |
//! | 7.5.1, 7.5.5 | details, no secret in them | `observe::details_show_everything_but_secrets` |
//! | 7.5.2, 7.5.3 | tasks in a stable order, usage with what is unknown | `observe::tasks_and_usage_come_from_the_instance` |
//! | 7.5.4 | logs by tail, page and download | `logs::a_log_is_read_by_its_end_by_page_and_whole` |
//! | secrets | nowhere in an answer, a log or a list | `canary::no_answer_no_log_and_no_list_has_a_secret_in_it` |
//! | backup | while running, whole or not at all | `backup::*` |
//! | 8.1, 8.3 | read, write, compare, refuse | `config::a_config_is_read_compared_changed_and_refused` |
//! | 8.2 | who is late is told | `config::of_a_hundred_writers_one_wins_each_version` |
//! | 8.4 | a restart picks changes up | `config::a_running_instance_takes_a_change_up_or_keeps_the_old` |
//! | 10.1.1 | one sends, the other receives and acknowledges | `messages::gate_1_…`, between real children `messages_live::*` |
//! | 10.1.2 to 10.1.7 | repeats, hops, rules, dead letters, size, secrets | `messages::gate_2_…` to `gate_7_…` |
//! | 10.2.1 to 10.2.6 | boxes, chains, dead letters, histories, no secrets, append-only | `messages_seen::gate_1_…` to `gate_6_…` |
//! | 13.1 | create, archive, unarchive, clone, delete | `crud::*` |
//! | 13.1 | messages outlive their instances, rules do not | `messages_seen::messages_outlive_their_instances_and_rules_do_not` |
//! | 14 | snapshot, deltas, lines, close codes | `sockets::*`, `codes::*`, `messages_sockets::*` |
//! | audit | every change, through the gateway too | `audit::*`, `passage::*` |
//! | paths | no id leads out of its folder | `paths::*` |

#![allow(clippy::unwrap_used, reason = "the lint's own exception for tests does not reach fixtures")]

mod access;
mod audit;
mod backup;
mod canary;
mod cluster;
mod codes;
mod commands;
mod config;
mod crud;
mod doors;
mod gateway;
mod import;
mod left;
mod lifecycle;
mod logs;
mod messages;
mod messages_kills;
mod messages_live;
mod messages_seen;
mod messages_sockets;
mod observe;
mod passage;
mod paths;
mod plane;
mod revoked;
mod service;
mod sockets;
mod supervisor;
