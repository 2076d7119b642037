//! Builds a systemd user unit. Needs no root.

use super::{ServiceSpec, ServiceUnit, UNIT_MARK, path_text, split_words};

pub fn systemd_unit(service: &ServiceSpec) -> ServiceUnit {
    let name = service.name();
    let settings = service.settings.clone().unwrap_or_else(|| service.user_home.join(".config"));
    ServiceUnit {
        path: settings.join("systemd/user").join(format!("{name}.service")),
        text: unit_text(service),
        install: vec![
            split_words("systemctl --user daemon-reload"),
            split_words(&format!("systemctl --user enable --now {name}.service")),
        ],
        uninstall: vec![split_words(&format!("systemctl --user disable --now {name}.service"))],
        status: split_words(&format!("systemctl --user is-active {name}.service")),
    }
}

/// `KillMode=process` ends only the control plane's own process, because instances outlive it.
fn unit_text(service: &ServiceSpec) -> String {
    let program = quote_word(&path_text(&service.program));
    let set = |(name, value): &(String, String)| {
        format!("Environment={}\n", quote_word(&format!("{name}={value}")))
    };
    let environment: String = service.environment().iter().map(set).collect();
    format!(
        "# {UNIT_MARK}; remove it with `polyclaw service uninstall`.
[Unit]
Description=Polyclaw control plane
After=network-online.target

[Service]
ExecStart={program} control
{environment}Restart=on-failure
RestartSec=5
KillMode=process
UMask=0077

[Install]
WantedBy=default.target
"
    )
}

/// Quotes a word for a unit file.
fn quote_word(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{}\"", escaped.replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemd_unit_keeps_home_and_port_of_installer() {
        let service = ServiceSpec {
            program: "/usr/bin/polyclaw".into(),
            home: "/home/x/.polyclaw".into(),
            user_home: "/home/x".into(),
            settings: None,
            place: vec![("POLYCLAW_CP_PORT".into(), "18900".into())],
        };
        let expected = "ExecStart=\"/usr/bin/polyclaw\" control\nEnvironment=\"POLYCLAW_HOME=/home/x/.polyclaw\"\n\
            Environment=\"POLYCLAW_CP_PORT=18900\"\nRestart=on-failure\n";
        assert!(systemd_unit(&service).text.contains(expected), "{}", systemd_unit(&service).text);
    }

    #[test]
    fn systemd_paths_are_quoted_and_escaped() {
        for (text, expected) in [
            ("/usr/bin/polyclaw", r#""/usr/bin/polyclaw""#),
            ("/a b/c", r#""/a b/c""#),
            (r#"/a"b\c"#, r#""/a\"b\\c""#),
            ("/100%/$HOME", r#""/100%%/$$HOME""#),
            ("/a\nExecStart=/bin/evil", r#""/a\nExecStart=/bin/evil""#),
        ] {
            assert_eq!(quote_word(text), expected);
        }
    }
}
