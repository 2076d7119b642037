//! The port by which a running instance takes up a config that was changed.

use polyclaw_domain::port::BoxFuture;

/// The sections that take effect at the next start; everything else does now.
pub type RestartSections = Vec<&'static str>;

pub trait ConfigReloader: Send + Sync {
    /// Either all of the new config holds from the next turn on, or the old one stays and this says why.
    fn reload_config(&self) -> BoxFuture<'_, Result<RestartSections, String>>;
}
