//! Reads a secret from a person: typed without echo, or piped in. Never an argument.

use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;

use polyclaw_domain::config::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::MAX_SECRET_LEN;
use crate::failure::CommandFailure;

/// Reads the value from the terminal or from piped input.
pub fn read_secret(name: &str) -> Result<Secret, CommandFailure> {
    let stdin = io::stdin();
    let value = if stdin.is_terminal() { read_at_terminal(name) } else { read_piped(stdin.lock()) };
    let value =
        value.map_err(|error| CommandFailure::usage(format!("the value could not be read: {error}")))?;
    match value.len() {
        0 => Err(CommandFailure::usage("the value is empty")
            .hint("type it, or pipe it in: `pass show x | polyclaw secrets set x`")),
        size if size > MAX_SECRET_LEN => {
            Err(CommandFailure::usage(format!("the value has more than {MAX_SECRET_LEN} bytes")))
        }
        _ => Ok(Secret::new(value)),
    }
}

/// Reads piped input without the trailing line break that `echo` and editors add.
fn read_piped(input: impl Read) -> io::Result<String> {
    let mut value = String::new();
    input.take(MAX_SECRET_LEN as u64 + 2).read_to_string(&mut value)?;
    let line = value.strip_suffix('\n').unwrap_or(&value);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

/// Restores the terminal settings when dropped.
struct EchoGuard {
    before: Termios,
}

impl EchoGuard {
    /// Disables echo, line buffering and signal keys. A signal during a line read could end the process with echo
    /// still off.
    fn disable_echo() -> io::Result<Self> {
        let before = tcgetattr(io::stdin().as_fd())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(io::stdin().as_fd(), OptionalActions::Flush, &quiet)?;
        Ok(Self { before })
    }
}

impl Drop for EchoGuard {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Flush, &self.before);
        let _ = writeln!(io::stderr());
    }
}

fn read_at_terminal(name: &str) -> io::Result<String> {
    let mut err = io::stderr();
    write!(err, "Value of {name} (not shown): ")?;
    err.flush()?;
    let _silence = EchoGuard::disable_echo()?;
    let mut typed: Vec<u8> = Vec::new();
    for byte in io::stdin().lock().bytes() {
        match byte? {
            b'\n' | b'\r' | 4 => break,
            3 => return Err(io::Error::new(io::ErrorKind::Interrupted, "cancelled")),
            8 | 127 => {
                // Removes a whole character, however many bytes it has.
                while typed.pop().is_some_and(|byte| byte & 0xC0 == 0x80) {}
            }
            byte => typed.push(byte),
        }
    }
    String::from_utf8(typed).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn piped_secret_loses_one_trailing_line_ending() {
        for (given, value) in [("abc\n", "abc"), ("abc\r\n", "abc"), ("abc", "abc"), ("a\nb\n\n", "a\nb\n")] {
            assert_eq!(read_piped(given.as_bytes()).unwrap(), value);
        }
    }
}
