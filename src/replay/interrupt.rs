//! Ctrl-C: the first press ends a measurement after the current run, the second ends the program at once.

use super::error::ReplayError;
use signal_hook::consts::SIGINT;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static PRESSED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Shells report this code for a program that Ctrl-C ended.
const EXIT_CODE: i32 = 130;

/// From here on [`check`] heeds Ctrl-C.
pub fn listen() -> io::Result<()> {
    let pressed = PRESSED.get_or_init(Arc::default);
    // In this order, the second press finds the flag that the first set.
    signal_hook::flag::register_conditional_shutdown(SIGINT, EXIT_CODE, Arc::clone(pressed))?;
    signal_hook::flag::register(SIGINT, Arc::clone(pressed))?;
    Ok(())
}

pub fn check() -> Result<(), ReplayError> {
    match PRESSED.get() {
        Some(pressed) if pressed.load(Ordering::Relaxed) => Err(ReplayError::Interrupted),
        _ => Ok(()),
    }
}
