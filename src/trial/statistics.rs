//! The mean of a few differences, and how sure it is.

/// Student's t for 95 %, two-sided, by degrees of freedom from 1.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// For more.
const MANY: f64 = 1.96;

/// The mean, and half of its 95 % interval: infinite of fewer than two.
pub fn interval(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / n };
    if values.len() < 2 {
        return (mean, f64::INFINITY);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let t = T.get(values.len() - 2).copied().unwrap_or(MANY);
    (mean, t * (variance / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By R: t.test(c(10, 12, 11, 13)): 11.5, 9.446 to 13.554.
    #[test]
    fn an_interval_is_students() {
        let (mean, half) = interval(&[10.0, 12.0, 11.0, 13.0]);
        assert!((mean - 11.5).abs() < 1e-9 && (half - 2.054).abs() < 1e-3, "{mean} {half}");
        assert_eq!(interval(&[5.0]), (5.0, f64::INFINITY));
        assert_eq!(interval(&[5.0; 8]), (5.0, 0.0));
    }
}
