//! Teams, on a real SQLite file with a ledger of its own and on PostgreSQL, with real tasks and threads. The ledger
//! itself, with its scenarios of tasks and concurrency, is tested where it is stored. Which scenario is which test:
//!
//! | scenario | test |
//! |---|---|
//! | lifecycle 1, 2, 3 | `lifecycle::new_team_has_folder_config_and_ledger` |
//! | lifecycle 4 | `lifecycle::invalid_team_name_creates_nothing` |
//! | lifecycle 5 | `lifecycle::team_name_must_be_unique` |
//! | lifecycle 6 | `lifecycle::team_without_members_ends_immediately` |
//! | lifecycle 7 | `lifecycle::shutdown_sends_request_to_every_member` |
//! | lifecycle 8 | `lifecycle::approving_member_is_closed_and_lead_is_notified` |
//! | lifecycle 9 | `lifecycle::rejecting_member_cancels_team_shutdown` |
//! | lifecycle 10 | `lifecycle::silence_of_working_member_cancels_shutdown` |
//! | lifecycle 11 | `lifecycle::silence_of_idle_member_counts_as_approval`, `lifecycle::member_that_becomes_idle_does_not_cancel_shutdown` |
//! | mailbox 1, 3 | `mail::team_message_is_only_in_recipients_inbox` |
//! | mailbox 2 | `mail::team_message_is_shown_in_next_model_call` |
//! | mailbox 4 | `mail::reply_text_of_member_reaches_nobody` |
//! | mailbox 5, 6 | `mail::lead_broadcast_reaches_every_member` |
//! | mailbox 7 | `mail::member_broadcast_excludes_sender` |
//! | mailbox 8, 11 | `mail::each_shutdown_request_has_its_own_id` |
//! | mailbox 9, 12 | `mail::shutdown_approval_carries_request_id` |
//! | mailbox 10 | `mail::shutdown_rejection_reaches_lead_with_reason` |
//! | mailbox 13, 14 | `mail::long_team_message_is_summarised_in_ten_words` |
//! | mailbox 15 | `mail::idle_members_are_reported_to_lead_once`, `stuck::inbox_files_contain_each_message_once` |
//! | mailbox 16 | `mail::no_idle_notice_is_sent_during_shutdown` |
//! | mailbox 17 | `mail::lead_and_events_see_only_message_summary` |
//! | mailbox 18 | `mail::team_message_is_delivered_after_downtime` |
//! | mailbox 19 | `mail::three_team_messages_arrive_once_in_order` |
//! | spawning 1, 2, 3, 5, 10, 13, 14 | `members::member_has_its_own_lasting_session` |
//! | spawning 4 | `members::members_inherit_sandbox_of_confined_lead`, `privilege::team_member_has_no_tool_that_lead_lacks` |
//! | spawning 6, 15 | `members::first_prompt_of_member_has_task_and_team_state` |
//! | spawning 7 | `members::member_uses_its_own_model` |
//! | spawning 8 | `members::a_member_can_be_another_agent` |
//! | spawning 9 | `members::unknown_team_or_invalid_member_name_is_refused` |
//! | spawning 11, 12 | `members::member_spawn_depth_is_counted_and_limited`, `members::spawn_depth_below_member_is_limited` |
//! | spawning 16 | `members::task_end_is_announced_to_lead_once` |
//! | spawning 17 | `members::team_shutdown_archives_member_sessions` |
//! | spawning 18 | `members::concurrently_joining_members_are_all_added` |
//! | lead 1, 2, 3, 14 | `lead::lead_prompt_shows_members_and_their_tasks`, `stuck::team_config_file_follows_member_turns` |
//! | lead 4 | `lead::assigned_task_wakes_only_its_member` |
//! | lead 5 | `lead::free_task_is_offered_to_first_idle_member` |
//! | lead 6, 7 | `lead::completed_and_unblocked_tasks_are_announced_to_lead` |
//! | lead 8 | `lead::unblocked_task_can_be_assigned_by_lead` |
//! | lead 9, 10, 11 | `lead::team_ends_after_last_shutdown_approval` |
//! | lead 12, 13 | `lead::team_state_is_in_prompt_after_compaction` |
//! | lead 15 | `lead::failed_member_is_reported_and_team_continues` |
//! | lead 16 | `lead::replacement_inherits_tasks_and_team_messages` |
//! | lead 17 | `lead::team_status_reports_progress` |
//! | lead 18 | `crash::team_builds_page_despite_failed_check_and_killed_worker`, `crash::team_on_postgres_builds_page_despite_kills`, `story::team_completes_page_after_crash_and_lead_reports_it` |

macro_rules! on_both {
    ($($check:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $check() { crate::teams::fixture::on_sqlite(super::$check); })*
        }

        mod on_postgres {
            $(#[test] fn $check() { crate::teams::fixture::on_postgres(super::$check); })*
        }
    };
}

mod authority;
mod busy_lead;
pub mod chaos;
mod checks;
pub mod fixture;
mod lead;
mod lifecycle;
mod mail;
mod manage;
mod members;
mod narrow;
mod offers;
mod plan;
mod recall;
mod setback;
mod stop;
mod story;
mod stuck;
mod two;
