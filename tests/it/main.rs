//! The integration tests: one binary, so that the library is linked once.

mod browser;
mod cli;
mod cost;
mod diff;
mod export;
mod filters;
mod formats;
mod gate;
mod hostile;
mod html;
mod look;
mod loops;
mod properties;
mod recipe;
mod replay;
mod samples;
mod scans;
mod schemas;
mod scripts;
mod sites;
mod snippets;
mod timeline;
mod verdicts;
mod waits;
