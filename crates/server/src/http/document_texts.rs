//! Completes the texts of the OpenAPI documents: the server, the tags, and descriptions that can be derived. Generators
//! and linters of other projects require them.

use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::tag::Tag;
use utoipa::openapi::{Components, Content, OpenApi, Ref, RefOr, Server};

/// The tags of both documents with their descriptions.
const TAG_DESCRIPTIONS: [(&str, &str); 17] = [
    ("access", "Tokens and browser logins of the control plane."),
    ("agents", "Agents, their files and tools, runs of sub-agents, skills and cron jobs."),
    ("approvals", "Tool calls that need a person's approval."),
    ("channels", "Accounts of chat platforms, pairing, routing and webhooks."),
    ("config", "Configuration of instances: read, compare, validate, change."),
    ("gateway", "Forwards calls to the API of an instance."),
    ("health", "Whether the control plane is alive and ready."),
    ("import", "Import of an OpenClaw home."),
    ("instance", "State, health, models, usage, events and logins of this instance."),
    ("instances", "The instances of a control plane: create, start, stop, archive, clone, delete."),
    ("memory", "Facts that agents remember: search, list, import, export, delete."),
    ("messages", "Messages between instances and the rules that route them."),
    ("observe", "What instances do: details, logs, events and the audit log."),
    ("outbox", "Outbound messages to channels."),
    ("sessions", "Conversations: messages, transcripts, streams and commands."),
    ("teams", "Teams of agents: members, tasks and messages."),
    ("turns", "Turns: their state and their answer."),
];

/// Adds the server, the tags that are in use, and missing descriptions of operations and responses.
pub fn complete_texts(document: &mut OpenApi) {
    document.servers = Some(vec![Server::new("/")]);
    let components = document.components.clone().unwrap_or_default();
    let mut used = Vec::new();
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            used.extend(operation.tags.clone().unwrap_or_default());
            describe_operation(operation, &components);
        }
    }
    let is_used = |(name, _): &&(&str, &str)| used.iter().any(|tag| tag == name);
    document.tags = Some(TAG_DESCRIPTIONS.iter().filter(is_used).map(describe_tag).collect());
}

fn describe_tag((name, description): &(&str, &str)) -> Tag {
    let mut tag = Tag::new(name);
    tag.description = Some((*description).to_owned());
    tag
}

fn describe_operation(operation: &mut Operation, components: &Components) {
    if operation.description.is_none() {
        operation.description.clone_from(&operation.summary);
    }
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            let described =
                response.content.values().find_map(|content| schema_description(content, components));
            let fallback = if status == "204" { "Done, without a body." } else { "The result." };
            response.description = described.unwrap_or_else(|| fallback.to_owned());
        }
    }
}

/// Returns the first line of the description of the schema that a response refers to.
fn schema_description(content: &RefOr<Content>, components: &Components) -> Option<String> {
    let RefOr::T(Content { schema: Some(RefOr::Ref(reference)), .. }) = content else { return None };
    let named = |(name, _): &(&String, &RefOr<Schema>)| {
        Ref::from_schema_name(name.as_str()).ref_location == reference.ref_location
    };
    let RefOr::T(schema) = components.schemas.iter().find(named)?.1 else { return None };
    let description = match schema {
        Schema::Object(object) => object.description.as_deref(),
        Schema::Array(array) => array.description.as_deref(),
        Schema::OneOf(one_of) => one_of.description.as_deref(),
        Schema::AllOf(all_of) => all_of.description.as_deref(),
        Schema::AnyOf(any_of) => any_of.description.as_deref(),
        _ => None,
    };
    description.and_then(|text| text.lines().next()).filter(|line| !line.is_empty()).map(str::to_owned)
}
