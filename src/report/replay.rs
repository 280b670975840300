//! Replays in words.
use super::style::Style;
use crate::replay::measured::Measured;
use crate::replay::plan::Plan;
use std::io::{self, Write};
pub fn plan(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, plan)?;
    writeln!(out)
}
pub fn json(measured: &Measured, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, measured)?;
    writeln!(out)
}
pub fn table(_: &Plan, _m: &Measured, _: &Style, _out: &mut dyn Write) -> io::Result<()> {
    Ok(())
}
pub fn markdown(_: &Plan, _m: &Measured, _out: &mut dyn Write) -> io::Result<()> {
    Ok(())
}
