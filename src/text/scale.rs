//! Durations of a column in one unit.

use super::sign;

/// The common unit of a column's durations, by the longest: "2.34 ms" beside "0.08 ms".
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    ns: u64,
    name: &'static str,
    decimals: usize,
}

impl Scale {
    pub fn of(durations: impl IntoIterator<Item = i64>) -> Self {
        let longest = durations.into_iter().map(i64::unsigned_abs).max().unwrap_or(0);
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns")];
        let (ns, name) = units.into_iter().find(|(ns, _)| longest >= *ns).unwrap_or((1, "ns"));
        let decimals = if ns == 1 { 0 } else { 1 + usize::from(longest < 10 * ns) };
        Self { ns, name, decimals }
    }

    /// A duration in this unit; one that would round to 0 prints as `<` the least digit.
    pub fn show(self, duration: i64) -> String {
        let Self { ns, name, decimals } = self;
        let parts = 10_u64.pow(decimals as u32);
        let scaled = u128::from(duration.unsigned_abs()) * u128::from(parts);
        let rounded = (scaled + u128::from(ns) / 2) / u128::from(ns);
        let number = |parts_of: u128| format!("{:.decimals$}", parts_of as f64 / parts as f64);
        match (duration, rounded) {
            (0, _) => format!("0 {name}"),
            (_, 0) => format!("<{} {name}", number(1)),
            _ => format!("{}{} {name}", sign(duration), number(rounded)),
        }
    }
}
