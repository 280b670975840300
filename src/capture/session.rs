//! A window into a program that lives on, such as a server.
//!
//! ```text
//!  run --session web -- PROGRAM     nsys launch [program ..............................................]
//!  run --attach web --duration 5                        nsys start [recorded] nsys stop   export, report
//! ```
//! The start of the program sets what nsys traces; the start of a recording sets whether nsys takes backtraces.

use super::commands::Commands;
use super::process::{self, Ran, quietly};
use super::{Part, Request, nsys};
use anyhow::{Result, bail};
use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How long nsys may write after the end of a program.
const WRITTEN: Duration = Duration::from_secs(120);
/// A file of two gigabytes grows between two looks.
const STILL: Duration = Duration::from_secs(2);

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

/// The command's part in a program that lives on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    Start(Session),
    Attach(Session),
}

impl Part<'_> {
    /// Records a session until a signal comes, or for the duration.
    pub(super) fn window(&self, request: &Request, session: &Session, commands: &Commands) -> Result<Ran> {
        if !nsys::has_session(&commands.nsys, &session.0) {
            bail!(
                "there is no session {session} here: start the program with `sync-report run --session {session} -- PROGRAM`"
            );
        }
        let began = quietly(&commands.start(session, &self.stem, true));
        began.map_err(|said| self.failed(2, &format!("nsys does not record: {said}")))?;
        (self.say)(&match request.duration {
            Some(seconds) => format!("recording for {seconds} s"),
            None => "recording until Ctrl-C".to_owned(),
        });
        process::until(request.duration.map(|seconds| Duration::from_secs(seconds.into())), self.heard);
        (self.say)(process::writes(commands.stacks));
        if let Err(said) = quietly(&commands.stop(session)) {
            // A program that ended meanwhile has ended the session, and nsys writes what it has.
            (self.say)(&format!("nsys had stopped before ({said})"));
            self.settle();
        }
        Ok(Ran { exit: 0, ended: None })
    }

    /// Waits until a recording is there and grows no more.
    fn settle(&self) {
        let size = || {
            let files = ["nsys-rep", "qdstrm"].map(|extension| self.with(extension).metadata());
            files.into_iter().flatten().map(|meta| meta.len()).sum::<u64>()
        };
        let (start, mut before) = (Instant::now(), 0);
        while start.elapsed() < WRITTEN && !self.heard.any() {
            std::thread::sleep(STILL);
            let now = size();
            if now > 0 && now == before {
                return;
            }
            before = now;
        }
    }
}
