//! `/team`: what teams are doing, in a chat.

use crate::core::Engine;
use crate::error::Result;
use crate::team::Actor;

impl Engine {
    /// One team whole, or a line for each.
    pub(super) async fn team_command(&self, name: &str) -> Result<String> {
        let operator = Actor::Operator { call: self.next_id() };
        if !name.is_empty() {
            return Ok(self.team_view(&operator, name).await?.for_people());
        }
        let mut lines = Vec::new();
        for team in self.teams(false).await? {
            let view = self.team_view(&operator, &team.name).await?;
            let working = view.members.iter().filter(|standing| standing.is_working).count();
            lines.push(format!(
                "{} ({}): {} member(s), {working} at work; {}",
                team.name,
                team.status.as_str(),
                view.members.len(),
                view.counts.line()
            ));
        }
        Ok(if lines.is_empty() { "There is no team.".to_owned() } else { lines.join("\n") })
    }
}
