//! Teams, on a real SQLite file with a ledger of its own and on PostgreSQL, with real tasks and threads. The ledger
//! itself, with its scenarios of tasks and concurrency, is tested where it is stored. Which scenario is which test:
//!
//! | scenario | test |
//! |---|---|
//! | lifecycle 1, 2, 3 | `lifecycle::a_new_team_has_a_folder_a_config_and_a_ledger` |
//! | lifecycle 4 | `lifecycle::a_bad_name_makes_nothing` |
//! | lifecycle 5 | `lifecycle::a_name_is_taken_once` |
//! | lifecycle 6 | `lifecycle::without_members_a_team_ends_at_once` |
//! | lifecycle 7 | `lifecycle::every_member_is_asked_to_stop` |
//! | lifecycle 8 | `lifecycle::a_member_that_agrees_is_closed_and_the_lead_knows` |
//! | lifecycle 9 | `lifecycle::a_member_that_objects_keeps_the_team` |
//! | lifecycle 10 | `lifecycle::silence_of_one_at_work_keeps_the_team` |
//! | lifecycle 11 | `lifecycle::silence_of_the_idle_is_consent`, `lifecycle::one_that_falls_idle_meanwhile_does_not_keep_the_team` |
//! | mailbox 1, 3 | `mail::a_letter_is_in_one_inbox_and_no_other` |
//! | mailbox 2 | `mail::a_letter_is_shown_at_the_next_inference` |
//! | mailbox 4 | `mail::what_is_only_said_reaches_nobody` |
//! | mailbox 5, 6 | `mail::a_broadcast_of_the_lead_reaches_every_member` |
//! | mailbox 7 | `mail::a_broadcast_of_a_member_leaves_it_out` |
//! | mailbox 8, 11 | `mail::requests_to_stop_have_numbers_of_their_own` |
//! | mailbox 9, 12 | `mail::an_approval_bears_the_number_of_its_request` |
//! | mailbox 10 | `mail::a_rejection_reaches_the_lead_with_its_reason` |
//! | mailbox 13, 14 | `mail::a_long_letter_has_a_summary_of_ten_words` |
//! | mailbox 15 | `mail::a_member_at_rest_is_told_to_the_lead`, `stuck::mailboxes_have_every_letter_once` |
//! | mailbox 16 | `mail::nobody_is_told_idle_while_shutting_down` |
//! | mailbox 17 | `mail::others_see_the_summary_only` |
//! | mailbox 18 | `mail::mail_waits_for_a_member_that_is_away` |
//! | mailbox 19 | `mail::three_letters_come_in_order_and_once` |
//! | spawning 1, 2, 3, 5, 10, 13, 14 | `members::a_member_is_a_session_of_its_own` |
//! | spawning 4 | `members::a_confined_lead_has_confined_members`, `privilege::no_member_has_a_tool_that_its_lead_lacks` |
//! | spawning 6, 15 | `members::the_first_task_is_the_first_prompt_with_the_team_beside_it` |
//! | spawning 7 | `members::a_model_of_its_own_is_used` |
//! | spawning 8 | `members::a_member_can_be_another_agent` |
//! | spawning 9 | `members::an_unknown_team_has_no_members` |
//! | spawning 11, 12 | `members::depth_is_counted_and_bounded`, `members::depth_below_a_member_is_bounded_too` |
//! | spawning 16 | `members::the_end_of_a_task_is_announced_to_the_lead` |
//! | spawning 17 | `members::a_shutdown_closes_sessions` |
//! | spawning 18 | `members::members_that_join_at_once_are_all_there` |
//! | lead 1, 2, 3, 14 | `lead::the_lead_sees_who_is_there_and_what_they_do`, `stuck::the_config_follows_turns` |
//! | lead 4 | `lead::an_assigned_task_wakes_its_member` |
//! | lead 5 | `lead::of_several_idle_members_the_first_is_asked` |
//! | lead 6, 7 | `lead::a_completion_and_what_it_frees_are_in_the_next_context` |
//! | lead 8 | `lead::what_was_freed_can_be_assigned` |
//! | lead 9, 10, 11 | `lead::a_team_ends_with_the_last_of_three_approvals` |
//! | lead 12, 13 | `lead::the_team_is_known_after_a_compaction` |
//! | lead 15 | `lead::a_failing_member_is_told_and_the_team_goes_on` |
//! | lead 16 | `lead::a_replacement_has_the_tasks_and_the_mail` |
//! | lead 17 | `lead::progress_is_reported` |
//! | lead 18 | `crash::a_team_builds_a_page_though_a_check_fails_and_a_member_is_killed`, `crash::a_team_on_postgres_builds_the_same_page`, `story::a_team_builds_something_and_its_lead_tells_of_it` |

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
