//! The expressions of a line that wait in the way that the trace saw.

pub mod callee;
pub mod fit;
pub mod line;
mod observed;
mod sync_expr;

pub use callee::Callee;
pub use observed::{Beside, Observed};
pub use sync_expr::{Index, SyncExpr, converted, formatted, guesses, tested};
