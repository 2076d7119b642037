//! The terminal while the chat has it. It is given back however the chat ends, a panic included.

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
        // Sets a hook of its own that leaves the alternate screen first.
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
