//! Which expressions of a line wait in the way that the trace saw.

pub mod callee;
pub mod fit;
pub mod line;
pub mod observed;
pub mod sync_expr;
