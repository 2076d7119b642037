//! The port through which a running instance reloads its config.

use polyclaw_domain::port::BoxFuture;

/// Sections that take effect at the next start. All others apply immediately.
pub type RestartSections = Vec<&'static str>;

pub trait ConfigReloader: Send + Sync {
    /// Applies the new config from the next turn, or keeps the old one and returns why.
    fn reload_config(&self) -> BoxFuture<'_, Result<RestartSections, String>>;
}
