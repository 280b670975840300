//! Traces of torch.profiler, that is Kineto's Chrome JSON: read in one pass, as the tables that an nsys export has.
//!
//! ```text
//!  trace.json.gz ─▶ inflate ─▶ event (one at a time) ─▶ tables: columns in memory ─▶ the reader of every export
//!                                                         └─ stacks: what Python and which operators were around a call
//! ```
//! A trace holds no native chains, no calls of the operating system and no samples. Lines of Python are those of calls since
//! PyTorch 2.14; before, a function's first line is all there is. Cost: one pass over the text; memory is that of the
//! columns, a twentieth of the text or less.

mod event;
mod host;
mod names;
mod stacks;
mod tables;
mod thread;

use super::memory::Tables;
use crate::error::InputError;
use crate::profile::header::io_error;
use event::Ending;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use tables::Builder;

/// Bytes that are read, and inflated, at a time.
const BLOCK: usize = 1 << 18;
/// First bytes of a gzip stream.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A trace's tables.
pub struct Trace {
    pub tables: Tables,
    /// The text ends before the trace does.
    pub cut: bool,
}

/// Whether a file may be a trace: its text begins as JSON does, packed or not.
pub fn is_trace(file: &Path) -> bool {
    // To open a pipe waits for who writes it.
    if !file.is_file() {
        return false;
    }
    let mut head = [0; 64];
    let read = open(file).and_then(|mut text| text.read(&mut head)).unwrap_or(0);
    let text = head[..read].iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(text, Some(b'{' | b'['))
}

/// Reads a trace; `file` is what `path` leads to.
///
/// # Errors
/// [`InputError`]: it cannot be read, is damaged, or holds no event of torch.profiler.
pub fn read(path: &Path, file: &Path) -> Result<Trace, InputError> {
    let text = open(file).map_err(|e| io_error(path, &e))?;
    let mut builder = Builder::new();
    let (header, ending) = event::read(text, |event| builder.take(event))
        .map_err(|e| InputError::BadTrace { path: path.to_owned(), reason: e.to_string() })?;
    if builder.known == 0 {
        return Err(InputError::NotTrace(path.to_owned()));
    }
    let cut = matches!(ending, Ending::Cut);
    Ok(Trace { tables: builder.finish(&header, cut), cut })
}

/// The text of a file, unpacked. A buffer stands outermost: the parser takes byte by byte.
fn open(file: &Path) -> std::io::Result<BufReader<Box<dyn Read>>> {
    let mut reader = BufReader::with_capacity(BLOCK, File::open(file)?);
    let packed = reader.fill_buf()?.starts_with(&GZIP);
    let text: Box<dyn Read> = if packed { Box::new(MultiGzDecoder::new(reader)) } else { Box::new(reader) };
    Ok(BufReader::with_capacity(BLOCK, text))
}
