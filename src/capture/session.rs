//! A window into a program that lives on, such as a server.
//!
//! ```text
//!  run --session web -- PROGRAM     nsys launch [program ..............................................]
//!  run --attach web --duration 5                        nsys start [recorded] nsys stop   export, report
//! ```
//! What is traced is said at the start of the program, whether backtraces are taken at the start of a recording.

use super::commands::Commands;
use super::process::{self, Ran, quietly};
use super::{Part, Request};
use anyhow::{Result, anyhow};
use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;

/// The name of a session of nsys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session(String);

impl FromStr for Session {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
        if begins && text.chars().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err("it is a letter, then letters, digits, - and _")
        }
    }
}

impl Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is done to a program that lives on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    Start(Session),
    Attach(Session),
}

impl Part<'_> {
    /// Records a session until a signal comes, or for the duration.
    pub(super) fn window(&self, request: &Request, session: &Session, commands: &Commands) -> Result<Ran> {
        quietly(&commands.start(session, &self.stem, true)).map_err(|said| {
            let wanted = format!("`sync-report run --session {session} -- PROGRAM` must be running");
            self.failed(2, &format!("nsys does not record ({said}); {wanted}"))
        })?;
        (self.say)(&match request.duration {
            Some(seconds) => format!("recording for {seconds} s"),
            None => "recording until Ctrl-C".to_owned(),
        });
        process::until(request.duration.map(|seconds| Duration::from_secs(seconds.into())), self.heard);
        (self.say)(process::writes(commands.stacks));
        quietly(&commands.stop(session)).map_err(|said| anyhow!("nsys does not stop recording: {said}"))?;
        Ok(Ran { exit: 0, ended: None })
    }
}
