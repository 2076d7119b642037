//! Every type keeps its JSON: what a server serializes, a client deserializes, and the other way round.
#![allow(clippy::unwrap_used, reason = "the lint's own exception for tests does not reach helpers")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use polyclaw_api::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// An example of each type. `"@Name"` stands for the example of another type, and the key `@` for its fields.
fn examples() -> Map<String, Value> {
    serde_json::from_str(include_str!("examples.json")).unwrap()
}

fn resolve(examples: &Map<String, Value>, value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with('@') => resolve(examples, &examples[&text[1..]]),
        Value::Array(items) => items.iter().map(|item| resolve(examples, item)).collect(),
        Value::Object(fields) => {
            let mut all = Map::new();
            for (name, value) in fields {
                match resolve(examples, value) {
                    Value::String(flattened) if name == "@" => {
                        let fields = resolve(examples, &examples[&flattened]);
                        all.extend(fields.as_object().unwrap().clone());
                    }
                    value => drop(all.insert(name.clone(), value)),
                }
            }
            all.into()
        }
        plain => plain.clone(),
    }
}

/// Whether `whole` has every value of `part`, and possibly more fields.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, value)| whole.get(name).is_some_and(|found| contains(found, value)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        _ => whole == part,
    }
}

/// Returns the short name of the type and its example.
fn example_of<T: Serialize + DeserializeOwned>() -> (&'static str, Value) {
    let name = std::any::type_name::<T>().rsplit("::").next().unwrap();
    let examples = examples();
    let example = examples.get(name).unwrap_or_else(|| panic!("{name} has no example"));
    (name, resolve(&examples, example))
}

fn round_trips<T: Serialize + DeserializeOwned>() {
    let (name, example) = example_of::<T>();
    let read = |value: &Value| -> T {
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{name}: {error} in {value}"))
    };
    let sent = serde_json::to_value(read(&example)).unwrap();
    assert!(contains(&sent, &example), "{name}: {sent} lacks values of {example}");
    assert_eq!(serde_json::to_value(read(&sent)).unwrap(), sent, "{name}");
}

/// Whether the type accepts a field that it does not know.
fn accepts_unknown<T: Serialize + DeserializeOwned>() -> bool {
    let (_, mut example) = example_of::<T>();
    example["field_of_a_later_version"] = 1.into();
    serde_json::from_value::<T>(example).is_ok()
}

macro_rules! for_each {
    ($check:ident: $($type:ty),* $(,)?) => {
        $($check::<$type>();)*
    };
}

macro_rules! names {
    ($($type:ty),* $(,)?) => {
        [$(std::any::type_name::<$type>().rsplit("::").next().unwrap()),*]
    };
}

macro_rules! responses {
    ($macro:ident $(, $check:ident)?) => {
        $macro!($($check:)? agents::AgentSpecBody, agents::AgentView, agents::AgentBindingView, agents::AgentAppearance, agents::AgentList, agents::DefaultAgents, agents::AgentToolList, approvals::ApprovalList, approvals::ApprovalView, channels::ChannelAccountList, channels::ChannelAccountView, cleanup::CleanupResult, cleanup::UnusedSessionView, commands::CommandReply, config::ConfigReloadResult, context::ContextView, cron::CronJobList, cron::CronJobView, cron::CronRunResult, delegations::DelegationList, delegations::DelegationView, error::ErrorBody, error::ErrorBodyDetail, events::EventList, events::EventView, files::AgentFile, health::HealthView, health::StoreHealth, health::TaskHealth, health::ReadinessView, history::PastTurnList, history::PastTurnView, logins::LoginLink, logins::BrowserLoginList, logins::BrowserLogin, logins::StartedLogin, mcp::McpServers, mcp::McpServerView, memory::MemoryView, memory::MemoryList, memory::MemoryListItem, memory::MemoryImportResult, memory::ForgetResult, memory::MemoryStatus, messages::SessionMessageReceipt, messages::TurnReply, models::ModelList, models::ModelView, outbox::OutboxList, outbox::OutboxMessageView, pairing::PairingList, pairing::PairingView, route::RouteExplanation, route::AnswererView, route::CandidateView, runs::RunList, runs::RunView, sessions::SessionView, sessions::SessionList, sessions::CreatedSession, sessions::StopResult, sessions::QueuedTurnView, skills::SkillList, skills::SkillView, status::StatusView, status::SettingWarning, stream::StreamOpened, stream::ReaderNotice, teams::TeamList, teams::TeamView, teams::TeamDetail, teams::TeamTurnsView, teams::FailureStreakView, teams::MemberView, teams::TeamTaskList, teams::TeamTaskView, teams::TeamMessageList, teams::TeamMessageView, teams::AddedTask, teams::JoinedMemberView, teams::SentTeamMessageView, teams::TaskLogView, teams::TaskLogEntryView, teams::TeamShutdownView, teams::MemberShutdownView, tools::ToolView, tools::ToolPolicyView, tools::ToolExplanationView, tools::PolicyLayerView, tools::ToolList, transcript::SessionMessageView, transcript::TranscriptPage, transcript::BacklogView, transcript::InterruptedTaskView, tree::SessionNodeView, turns::TurnView, turns::TurnError, turns::TurnList, usage::TokenUsageView, usage::UsageReport, usage::UsageTotalView, usage::BudgetView, control::audit::AuditEntryList, control::audit::AuditEntryView, control::audit::AuditChainView, control::configs::ConfigView, control::configs::SecretView, control::configs::ConfigWriteResult, control::configs::ConfigValidation, control::configs::ConfigErrorView, control::configs::ConfigDiff, control::configs::ConfigChangeView, control::health::FleetHealth, control::health::InstanceHealth, control::health::VersionView, control::health::LivenessView, control::imports::ImportNote, control::imports::ImportReport, control::imports::ImportResult, control::imports::ImportRuns, control::imports::ImportRun, control::instances::InstanceView, control::instances::InstanceList, control::logs::LogLines, control::logs::LogRetention, control::messages::EnvelopeList, control::messages::EnvelopeReceipt, control::messages::EnvelopeView, control::messages::EnvelopeDetail, control::messages::EnvelopeEventView, control::observe::InstanceDetailsView, control::observe::BuildView, control::observe::BootstrapFileView, control::observe::RuntimeView, control::observe::InstanceUsageView, control::pending::PendingEnvelopeList, control::pending::PendingEnvelope, control::pending::RenewedLease, control::rules::RuleList, control::rules::RuleView, control::tokens::TokenList, control::tokens::TokenView, control::tokens::CreatedTokenView, teams::plan::PlanView, teams::tasks::TaskEnded)
    };
}

macro_rules! requests {
    ($macro:ident $(, $check:ident)?) => {
        $macro!($($check:)? approvals::ApprovalDecisionBody, attachments::AttachmentBody, cleanup::CleanupRequest, commands::CommandBody, cron::CronJobBody, files::AgentFileBody, logins::RedeemCodeBody, memory::NewMemory, memory::MemoryImport, memory::ImportedMemory, messages::NewSessionMessage, pairing::ApprovePairingBody, route::ExplainRouteBody, route::PeerBody, sessions::NewSession, sessions::SessionPatch, teams::CreateTeamBody, teams::JoinTeamBody, teams::AddTeamTaskBody, teams::SendTeamMessageBody, teams::SetLeadBody, teams::ShutdownTeamBody, control::configs::NewConfig, control::configs::ConfigDraft, control::imports::NewImport, control::instances::NewInstance, control::instances::NewClone, control::instances::UnarchiveBody, control::instances::RestartPolicyBody, control::messages::NewEnvelopeBody, control::pending::LeaseBody, control::pending::FailPendingBody, control::rules::NewRuleBody, control::rules::RulePatch, control::tokens::NewToken, teams::plan::AnswerPlan, teams::tasks::ActingMember, teams::tasks::ReleaseTask, teams::tasks::CompleteTask, teams::tasks::TaskArtifact, teams::tasks::AssignTask, agents::AgentToolsQuery, events::ListEventsQuery, history::ListHistoryQuery, memory::ListMemoriesQuery, memory::MemoryOwnerQuery, messages::WaitQuery, outbox::ListOutboxQuery, paging::PageQuery, pairing::RevokePairingBody, runs::ListRunsQuery, sessions::ListSessionsQuery, skills::ListSkillsQuery, stream::StreamQuery, teams::ListTeamsQuery, teams::ListTeamTasksQuery, teams::ListTeamMessagesQuery, teams::ReadTaskLogQuery, tools::ToolScopeQuery, transcript::TranscriptQuery, turns::ListTurnsQuery, usage::UsageQuery, control::instances::ListInstancesQuery, control::instances::StopTimeout, control::logs::ReadLogQuery, control::messages::ListEnvelopesQuery, control::messages::ListInstanceEnvelopesQuery, control::messages::ListDeadLettersQuery, control::observe::InstanceUsageQuery, control::pending::PollPendingQuery, control::rules::ListRulesQuery, control::sockets::EventSocketQuery, control::sockets::FleetSocketQuery, control::sockets::EnvelopeSocketQuery, control::sockets::LogSocketQuery)
    };
}

macro_rules! values {
    ($macro:ident $(, $check:ident)?) => {
        $macro!($($check:)? stream::StreamEvent, stream::StreamOpenedName, stream::MissedFrames, usage::UsageWindow, usage::UsageGroupBy, control::logs::LogReadMode, control::messages::EnvelopeDirection, control::messages::EnvelopeStateName, teams::tasks::TaskEnd)
    };
}

#[test]
fn every_type_keeps_its_json() {
    responses!(for_each, round_trips);
    requests!(for_each, round_trips);
    values!(for_each, round_trips);
}

#[test]
fn responses_accept_fields_of_later_versions() {
    fn check<T: Serialize + DeserializeOwned>() {
        assert!(accepts_unknown::<T>(), "{}", std::any::type_name::<T>());
    }
    responses!(for_each, check);
}

#[test]
fn requests_reject_unknown_fields() {
    fn check<T: Serialize + DeserializeOwned>() {
        assert!(!accepts_unknown::<T>(), "{}", std::any::type_name::<T>());
    }
    requests!(for_each, check);
}

#[test]
fn every_type_is_checked() {
    let mut checked: BTreeSet<&str> = responses!(names).into_iter().collect();
    checked.extend(requests!(names));
    checked.extend(values!(names));
    let mut defined = BTreeSet::new();
    for file in sources(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text = std::fs::read_to_string(&file).unwrap();
        for line in text.lines() {
            let name = line.strip_prefix("pub struct ").or(line.strip_prefix("pub enum "));
            let end = |name: &str| name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len());
            defined.extend(name.map(|name| name[..end(name)].to_owned()));
        }
    }
    let missing: Vec<_> = defined.iter().filter(|name| !checked.contains(name.as_str())).collect();
    assert!(missing.is_empty() && defined.len() > 150, "{missing:?} of {}", defined.len());
}

/// The documents keep one schema for each name: a second one of the same name would silently take its place.
#[test]
fn schema_names_are_unique() {
    let mut seen = BTreeSet::new();
    for file in sources(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let described = text.split("ToSchema").skip(1).filter(|rest| rest.starts_with([')', ',']));
        for rest in described {
            let marks = ["schema(as = ", "struct ", "enum "];
            let first = marks.iter().filter_map(|mark| Some((rest.find(mark)?, mark.len()))).min();
            let after = first.map_or("", |(at, length)| &rest[at + length..]);
            let name: String = after.chars().take_while(char::is_ascii_alphanumeric).collect();
            assert!(
                seen.insert(name.clone()),
                "two schemas are called {name}; the second is in {}",
                file.display()
            );
        }
    }
    assert!(seen.len() > 150, "{seen:?}");
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}
