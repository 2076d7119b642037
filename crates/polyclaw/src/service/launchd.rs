//! Builds a launchd property list for the user.

use super::{ServiceSpec, ServiceUnit, UNIT_MARK, path_text, split_words};

pub fn launchd_unit(service: &ServiceSpec) -> ServiceUnit {
    let label = format!("io.{}", service.name());
    let path = service.user_home.join("Library/LaunchAgents").join(format!("{label}.plist"));
    let load = |verb: &str| [split_words(&format!("launchctl {verb} -w")), vec![path_text(&path)]].concat();
    ServiceUnit {
        text: plist_text(service, &label),
        install: vec![load("load")],
        uninstall: vec![load("unload")],
        status: split_words(&format!("launchctl list {label}")),
        path: path.clone(),
    }
}

fn plist_text(service: &ServiceSpec, label: &str) -> String {
    let program = escape_xml(&path_text(&service.program));
    let set = |(name, value): &(String, String)| {
        format!("<key>{}</key><string>{}</string>", escape_xml(name), escape_xml(value))
    };
    let environment: String = service.environment().iter().map(set).collect();
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- {UNIT_MARK}. -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>{label}</string>
  <key>ProgramArguments</key><array><string>{program}</string><string>control</string></array>
  <key>EnvironmentVariables</key><dict>{environment}</dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>AbandonProcessGroup</key><true/>
</dict>
</plist>
"#
    )
}

fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchd_unit_names_program_and_home_and_environment() {
        let service = ServiceSpec {
            program: "/opt/a & b/polyclaw".into(),
            home: "/Users/x/.polyclaw".into(),
            user_home: "/Users/x".into(),
            settings: None,
            place: vec![("POLYCLAW_CP_PORT".into(), "18900".into())],
        };
        let unit = launchd_unit(&service);
        assert_eq!(unit.path, std::path::Path::new("/Users/x/Library/LaunchAgents/io.polyclaw.plist"));
        assert!(unit.text.contains("<string>/opt/a &amp; b/polyclaw</string><string>control</string>"));
        assert!(unit.text.contains("<string>/Users/x/.polyclaw</string>"));
        assert!(unit.text.contains("<key>POLYCLAW_CP_PORT</key><string>18900</string></dict>"));
        assert_eq!(unit.install[0].join(" "), format!("launchctl load -w {}", unit.path.display()));
    }
}
