//! Verdicts in the words that people read. JSON and options keep those of [`words`](super), which are a contract.

use super::{Class, Kind};

impl Class {
    /// The classes in the order of a report: what can go, what may, what stays.
    pub const LISTED: [Self; 3] = [Self::False, Self::Unknown, Self::True];

    /// The word that people read.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::False => "avoidable",
            Self::True => "needed",
            Self::Unknown => "undecided",
        }
    }

    /// The place among [`Class::LISTED`].
    pub const fn place(self) -> u8 {
        match self {
            Self::False => 0,
            Self::Unknown => 1,
            Self::True => 2,
        }
    }
}

impl Kind {
    /// The words that people read.
    pub fn in_words(self) -> String {
        match self {
            Self::Upload => "H2D copy".to_owned(),
            other => other.as_str().replace('-', " "),
        }
    }
}
