//! Traces of torch.profiler, in Kineto's Chrome JSON: read in one pass, as the tables of an nsys export.
//!
//! ```text
//!  trace.json.gz ─▶ inflate ─▶ event (one at a time) ─▶ tables: columns in memory ─▶ the reader of every export
//!                                                         └─ stacks: what Python and which operators were around a call
//! ```
//! A trace holds no native chains, operating-system calls or samples. Since PyTorch 2.14 Python lines are
//! those of calls; before, only a function's first line is known. Cost: one pass over the text; 1 GB of JSON
//! (a trace of an H100, 28 times over) takes 393 MB of memory.

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
use memchr::memmem;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use tables::Builder;

/// Bytes read, and inflated, at a time.
const BLOCK: usize = 1 << 18;
const GZIP: [u8; 2] = [0x1f, 0x8b];

pub struct Trace {
    pub tables: Tables,
    /// The text ends before the trace does.
    pub cut: bool,
}

/// Whether a file may be a trace: its text begins as JSON does, packed or not.
pub fn is_trace(file: &Path) -> bool {
    let text = head(file, 64);
    matches!(text.iter().find(|byte| !byte.is_ascii_whitespace()), Some(b'{' | b'['))
}

pub fn begins_like_trace(file: &Path) -> bool {
    /// Holds the properties of eight GPUs, which precede the events.
    const HEAD: usize = 1 << 14;
    const SIGNS: [&[u8]; 4] = [b"traceEvents", b"schemaVersion", b"deviceProperties", b"\"ph\""];
    let text = head(file, HEAD);
    SIGNS.iter().any(|sign| memmem::find(&text, sign).is_some())
}

/// A file's first bytes, unpacked; none of a pipe, which would wait for its writer.
fn head(file: &Path, most: usize) -> Vec<u8> {
    let mut text = Vec::new();
    if file.is_file()
        && let Ok(reader) = open(file)
    {
        // A packed text that is cut still has its beginning.
        let _ = reader.take(most as u64).read_to_end(&mut text);
    }
    text
}

/// `file`: `path` with links resolved.
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

/// The unpacked text. The outer buffer is for the parser, which takes byte by byte.
fn open(file: &Path) -> std::io::Result<BufReader<Box<dyn Read>>> {
    let mut reader = BufReader::with_capacity(BLOCK, File::open(file)?);
    let packed = reader.fill_buf()?.starts_with(&GZIP);
    let text: Box<dyn Read> = if packed { Box::new(MultiGzDecoder::new(reader)) } else { Box::new(reader) };
    Ok(BufReader::with_capacity(BLOCK, text))
}
