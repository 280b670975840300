//! Verdicts in the words that people read. JSON and options keep the words of [`words`](super), a contract.

use super::{Class, Kind};

impl Class {
    /// In the order of a report.
    pub const LISTED: [Self; 3] = [Self::False, Self::Unknown, Self::True];

    pub const fn in_words(self) -> &'static str {
        match self {
            Self::False => "avoidable",
            Self::True => "needed",
            Self::Unknown => "undecided",
        }
    }

    /// Place in [`Class::LISTED`].
    pub const fn place(self) -> u8 {
        match self {
            Self::False => 0,
            Self::Unknown => 1,
            Self::True => 2,
        }
    }
}

impl Kind {
    pub fn in_words(self) -> String {
        match self {
            Self::Upload => "H2D copy".to_owned(),
            other => other.as_str().replace('-', " "),
        }
    }
}
