//! Takes over the terminal for the chat and restores it when the chat ends, even after a panic.

use std::io::{self, stdout};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use ratatui::DefaultTerminal;

pub struct TerminalScreen {
    pub terminal: DefaultTerminal,
}

impl TerminalScreen {
    pub fn open() -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let _ = execute!(stdout(), DisableBracketedPaste);
            before(info);
        }));
        // Installs its own panic hook, which leaves the alternate screen first.
        let terminal = ratatui::try_init()?;
        execute!(stdout(), EnableBracketedPaste)?;
        Ok(Self { terminal })
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        let _ = execute!(stdout(), DisableBracketedPaste);
        ratatui::restore();
    }
}
