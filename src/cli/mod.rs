//! From the command line to a configuration, and from a result to an exit code. Only this room knows clap.

pub mod args;
pub mod bench;
pub mod check;
pub mod diff;
pub mod doctor;
pub mod explain;
mod export;
pub mod fix;
pub mod folders;
pub mod generate;
pub mod input;
pub mod lint;
pub mod merge;
pub mod options;
pub mod output;
pub mod own;
pub mod progress;
pub mod replay;
pub mod report;
#[cfg(unix)]
pub mod run;
pub mod threads;
#[cfg(unix)]
pub mod trial;
