//! Whether captures are good enough.

use super::{Tool, Warning};
use schemars::JsonSchema;
use serde::Serialize;

/// Result of examining captures.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// Version of this tree's layout: fields may be added, never renamed.
    pub schema_version: u32,
    /// The program that wrote the result.
    pub tool: Tool,
    /// One entry for each export, in the order given.
    pub captures: Vec<Examined>,
}

/// Result of examining one capture.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Examined {
    /// Path of the capture, as typed.
    pub profile: String,
    /// Whether the capture holds CUDA calls and no damage.
    pub usable: bool,
    /// Properties that a capture should have.
    pub checks: Vec<Check>,
    /// Limits of a report on the capture, most important first, with commands that mend them.
    pub warnings: Vec<Warning>,
    /// Further advice for capturing again; null where there is none.
    pub advice: Option<String>,
    /// Reason why no report can be made; null where one can.
    pub refused: Option<String>,
}

/// A property that a capture should have.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Check {
    /// Whether the capture has the property.
    pub good: bool,
    /// The property, in a few words.
    pub question: String,
    /// The finding, with its number.
    pub answer: String,
}
