//! Whether captures are good enough.

use super::{Tool, Warning};
use schemars::JsonSchema;
use serde::Serialize;

/// What was found of each capture.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// Version of this tree's layout: fields may be added, never renamed.
    pub schema_version: u32,
    /// What wrote it.
    pub tool: Tool,
    /// One for each export, in the order in which they were given.
    pub captures: Vec<Examined>,
}

/// What one capture has and lacks.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Examined {
    /// Its path, as it was typed.
    pub profile: String,
    /// Whether it holds CUDA calls, and no damage.
    pub usable: bool,
    /// What a capture should have.
    pub checks: Vec<Check>,
    /// What limits a report on it, most important first, with the command that mends it.
    pub warnings: Vec<Warning>,
    /// What to do besides where it is captured again.
    pub advice: Option<String>,
    /// Why no report can be made of it.
    pub refused: Option<String>,
}

/// What a capture should have, and whether this one has it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Check {
    /// Whether the answer is what one wants of a capture.
    pub good: bool,
    /// What is looked for, in some words.
    pub question: String,
    /// What was found, with its number.
    pub answer: String,
}
