//! Weak evidence.

pub mod observe;
pub mod rules;

use crate::sites::Bundle;
use crate::vocabulary::Evidence;
use observe::Observed;

pub fn dump(bundle: &Bundle, observed: &Observed) -> Vec<Evidence> {
    rules::RULES.iter().filter_map(|r| Some(Evidence::new(r.id, (r.says)(bundle, observed)?))).collect()
}
