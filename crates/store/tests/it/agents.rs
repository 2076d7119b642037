use polyclaw_domain::agent::AgentSpec;
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_store::{Db, Error, Result};

use crate::rows::{NOW, agent};

on_every_engine!(
    agent_is_stored_updated_and_deleted,
    config_sync_deletes_only_agents_from_config,
    agent_overlay_is_stored_until_it_is_empty
);

fn spec(id: &str, name: &str) -> AgentSpec {
    AgentSpec { name: name.into(), description: "ünïcode".into(), ..AgentSpec::with_id(agent(id)) }
}

async fn store(db: &Db, spec: AgentSpec, source: AgentSource, at: i64) -> Result<()> {
    db.write(move |tx| agents::upsert(tx, &spec, source, NOW.plus(at))).await
}

async fn ids(db: &Db) -> Result<Vec<String>> {
    Ok(db.read(agents::list).await?.iter().map(|stored| stored.spec.agent_id.to_string()).collect())
}

async fn agent_is_stored_updated_and_deleted(db: Db) -> Result<()> {
    store(&db, spec("ops", "Ops"), AgentSource::Config, 0).await?;
    store(&db, spec("a-z", "First"), AgentSource::Config, 0).await?;
    store(&db, spec("a_b", "Second"), AgentSource::Config, 0).await?;
    store(&db, spec("ops", "Operations"), AgentSource::Api, 5).await?;
    let stored = db.read(|tx| agents::get(tx, &agent("ops"))).await?.unwrap();
    assert_eq!((stored.spec, stored.source), (spec("ops", "Operations"), AgentSource::Api));
    assert_eq!((stored.created_at, stored.updated_at), (NOW, NOW.plus(5)));
    assert_eq!(ids(&db).await?, ["a-z", "a_b", "ops"]);
    let taken = store(&db, spec("other", "Operations"), AgentSource::Api, 0).await;
    assert!(matches!(taken, Err(Error::Conflict(_))), "{taken:?}");
    assert!(db.write(|tx| agents::delete(tx, &agent("ops"))).await?);
    assert!(!db.write(|tx| agents::delete(tx, &agent("ops"))).await?);
    assert!(db.read(|tx| agents::get(tx, &agent("ops"))).await?.is_none());
    Ok(())
}

async fn config_sync_deletes_only_agents_from_config(db: Db) -> Result<()> {
    store(&db, spec("kept", "kept"), AgentSource::Config, 0).await?;
    store(&db, spec("dropped", "dropped"), AgentSource::Config, 0).await?;
    store(&db, spec("made", "made"), AgentSource::Api, 0).await?;
    db.write(|tx| agents::retain_configured(tx, &[agent("kept")])).await?;
    assert_eq!(ids(&db).await?, ["kept", "made"]);
    Ok(())
}

async fn agent_overlay_is_stored_until_it_is_empty(db: Db) -> Result<()> {
    let read = async |db: &Db| db.read(|tx| agents::get_overlay(tx, &agent("main"))).await;
    assert_eq!(read(&db).await?, None);
    for patch in [
        serde_json::json!({ "name": "One" }),
        serde_json::json!({ "name": "Two", "policy": { "tools": null } }),
    ] {
        let given = patch.clone();
        db.write(move |tx| agents::set_overlay(tx, &agent("main"), &given, NOW)).await?;
        assert_eq!(read(&db).await?, Some(patch));
    }
    db.write(|tx| agents::set_overlay(tx, &agent("main"), &serde_json::json!({}), NOW)).await?;
    assert_eq!(read(&db).await?, None);
    Ok(())
}
