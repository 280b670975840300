//! The integration tests: one binary, so that the library is linked once.

mod browser;
#[cfg(unix)]
mod capture;
mod cli;
mod cost;
mod diff;
mod export;
mod fates;
mod filters;
mod folders;
mod formats;
mod gate;
mod growth;
mod hostile;
mod html;
mod lint;
mod look;
mod loops;
mod measured;
mod mending;
mod own_names;
mod properties;
mod python;
mod ranks;
mod reading;
mod recipe;
mod replay;
mod rooms;
mod samples;
mod scans;
mod schemas;
mod scripts;
mod sites;
mod snippets;
mod timeline;
mod traces;
#[cfg(unix)]
mod trial;
mod turns;
mod verdicts;
mod waits;
