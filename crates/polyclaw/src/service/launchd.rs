//! A property list of the user's launchd.

use super::{MARK, Service, Unit, shown, words};

pub fn unit(service: &Service) -> Unit {
    let label = format!("io.{}", service.name());
    let path = service.user_home.join("Library/LaunchAgents").join(format!("{label}.plist"));
    let load = |verb: &str| [words(&format!("launchctl {verb} -w")), vec![shown(&path)]].concat();
    Unit {
        text: text(service, &label),
        install: vec![load("load")],
        uninstall: vec![load("unload")],
        status: words(&format!("launchctl list {label}")),
        path: path.clone(),
    }
}

fn text(service: &Service, label: &str) -> String {
    let program = escaped(&shown(&service.program));
    let set = |(name, value): &(String, String)| {
        format!("<key>{}</key><string>{}</string>", escaped(name), escaped(value))
    };
    let environment: String = service.environment().iter().map(set).collect();
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- {MARK}. -->
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

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_list_names_the_program_and_the_home() {
        let service = Service {
            program: "/opt/a & b/polyclaw".into(),
            home: "/Users/x/.polyclaw".into(),
            user_home: "/Users/x".into(),
            settings: None,
            place: vec![("POLYCLAW_CP_PORT".into(), "18900".into())],
        };
        let unit = unit(&service);
        assert_eq!(unit.path, std::path::Path::new("/Users/x/Library/LaunchAgents/io.polyclaw.plist"));
        assert!(unit.text.contains("<string>/opt/a &amp; b/polyclaw</string><string>control</string>"));
        assert!(unit.text.contains("<string>/Users/x/.polyclaw</string>"));
        assert!(unit.text.contains("<key>POLYCLAW_CP_PORT</key><string>18900</string></dict>"));
        assert_eq!(unit.install[0].join(" "), format!("launchctl load -w {}", unit.path.display()));
    }
}
