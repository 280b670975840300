pub(super) const PATTERNS: &[super::Pattern] = &[];
