//! Precision and recall per class, calibration per band of confidence.

use super::marker::Label;
use std::fmt::Write;

pub struct Scored {
    pub label: Label,
    pub class: String,
    pub confidence: f64,
}

impl Scored {
    fn decided(&self) -> bool {
        self.class != "unknown"
    }

    fn right(&self) -> bool {
        self.class == self.label.class
    }
}

/// Lowest confidence of each band, best first.
const BANDS: [f64; 3] = [0.9, 0.8, 0.65];

pub fn table(title: &str, all: &[Scored]) -> String {
    let mut text = format!("{title}: {} labelled waits\n", all.len());
    for class in ["false", "true"] {
        let labelled = all.iter().filter(|s| s.label.class == class).count();
        let said = all.iter().filter(|s| s.class == class).count();
        let right = all.iter().filter(|s| s.class == class && s.right()).count();
        let _ = writeln!(
            text,
            "  {class:<5} labelled {labelled:3}  said {said:3}  right {right:3}  precision {}  recall {}",
            percent(right, said),
            percent(right, labelled)
        );
    }
    let undecided = all.iter().filter(|s| !s.decided()).count();
    let undecidable = all.iter().filter(|s| s.label.class == "unknown").count();
    let _ = writeln!(text, "  unknown said {undecided}, of which {undecidable} cannot be decided");
    for (at, &low) in BANDS.iter().enumerate() {
        let (right, said) = band(all, at);
        let _ =
            writeln!(text, "  confidence >= {low:.2}: {right:3} of {said:3} right {}", percent(right, said));
    }
    text
}

pub fn band(all: &[Scored], band: usize) -> (usize, usize) {
    let high = band.checked_sub(1).map_or(f64::INFINITY, |above| BANDS[above]);
    let within = |s: &&Scored| s.decided() && s.confidence >= BANDS[band] && s.confidence < high;
    let said: Vec<&Scored> = all.iter().filter(within).collect();
    (said.iter().filter(|s| s.right()).count(), said.len())
}

fn percent(part: usize, whole: usize) -> String {
    if whole == 0 { "   -  ".to_owned() } else { format!("{:5.1} %", 100.0 * part as f64 / whole as f64) }
}
