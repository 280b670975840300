//! The integration tests: one binary, so that the library is linked once.

mod export;
mod hostile;
mod scripts;
