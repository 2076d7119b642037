//! A unit of the user's systemd. Nothing of it needs root.

use super::{MARK, Service, Unit, shown, words};

pub fn unit(service: &Service) -> Unit {
    let name = service.name();
    let settings = service.settings.clone().unwrap_or_else(|| service.user_home.join(".config"));
    Unit {
        path: settings.join("systemd/user").join(format!("{name}.service")),
        text: text(service),
        install: vec![
            words("systemctl --user daemon-reload"),
            words(&format!("systemctl --user enable --now {name}.service")),
        ],
        uninstall: vec![words(&format!("systemctl --user disable --now {name}.service"))],
        status: words(&format!("systemctl --user is-active {name}.service")),
    }
}

/// Instances outlive the control plane: only its own process is ended with it.
fn text(service: &Service) -> String {
    let (program, home) =
        (quoted(&shown(&service.program)), quoted(&format!("POLYCLAW_HOME={}", shown(&service.home))));
    format!(
        "# {MARK}; it is taken away by `polyclaw service uninstall`.
[Unit]
Description=Polyclaw control plane
After=network-online.target

[Service]
ExecStart={program} control
Environment={home}
Restart=on-failure
RestartSec=5
KillMode=process
UMask=0077

[Install]
WantedBy=default.target
"
    )
}

/// One word of a unit, whatever is in it.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{}\"", escaped.replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_whatever_is_in_it() {
        for (text, expected) in [
            ("/usr/bin/polyclaw", r#""/usr/bin/polyclaw""#),
            ("/a b/c", r#""/a b/c""#),
            (r#"/a"b\c"#, r#""/a\"b\\c""#),
            ("/100%/$HOME", r#""/100%%/$$HOME""#),
            ("/a\nExecStart=/bin/evil", r#""/a\nExecStart=/bin/evil""#),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
