//! Sorts Python frames into user code and library code (standard library, PyTorch, installed packages).

use crate::model::Frame;
use crate::profile::payload::PyFrame;
use crate::text;

/// Which files are the user's: the longest prefix from the command line decides, else the built-in rules.
#[derive(Clone, Debug, Default)]
pub struct PathRules {
    pub user: Vec<String>,
    pub library: Vec<String>,
}

impl PathRules {
    pub fn is_user(&self, file: &str) -> bool {
        let longest = |list: &[String]| list.iter().filter(|p| has_prefix(file, p)).map(String::len).max();
        match (longest(&self.user), longest(&self.library)) {
            (None, None) => !is_library(file),
            (user, library) => user >= library,
        }
    }

    pub fn frame(&self, f: &PyFrame) -> Frame {
        let (function, file) = (f.function.to_string(), f.file.to_string());
        Frame { function, file, line: f.line, user: self.is_user(&f.file) }
    }

    /// Index of the innermost user frame of a stack (innermost first).
    pub fn user_index(&self, stack: &[PyFrame]) -> Option<usize> {
        stack.iter().position(|f| self.is_user(&f.file))
    }
}

/// Whether `prefix` holds `file`, by whole path components.
fn has_prefix(file: &str, prefix: &str) -> bool {
    let prefix = prefix.trim_end_matches(is_separator);
    file.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(is_separator))
}

fn is_separator(c: char) -> bool {
    c == '/' || c == '\\'
}

/// Standard library, installed package, PyTorch from source, or code that is no file.
fn is_library(file: &str) -> bool {
    // A prompt or notebook cell: the user typed this code.
    let is_interactive = file.starts_with("<stdin") || file.starts_with("<ipython-input");
    if file.is_empty() || (file.starts_with('<') && !is_interactive) {
        return true; // <frozen importlib._bootstrap>, <string>, <eval_with_key>.3
    }
    text::package(file).is_some()
        || text::is_of_python(file)
        || file.split(is_separator).any(|part| part.starts_with("torchinductor_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_whoever_is_not_installed() {
        let rules = PathRules::default();
        for (file, user) in [
            ("/workspace/train_mlp.py", true),
            ("train.py", true),
            ("/home/me/lib/helpers.py", true),
            ("/home/me/torch/train.py", true),
            ("C:\\Users\\me\\train.py", true),
            ("<stdin>", true),
            ("<ipython-input-3-abc>", true),
            ("/tmp/ipykernel_12/123.py", true),
            ("/venv/lib/python3.12/site-packages/torch/_tensor.py", false),
            ("/usr/lib/python3/dist-packages/numpy/core.py", false),
            ("/usr/lib/python3.10/threading.py", false),
            ("/root/.pyenv/versions/3.11.7/lib/python3.11/json/encoder.py", false),
            ("C:\\Python311\\Lib\\threading.py", false),
            ("/opt/pytorch/pytorch/torch/nn/modules/module.py", false),
            ("/opt/pytorch/pytorch/torch/_tensor_str.py", false),
            ("/tmp/torchinductor_root/ab/cab.py", false),
            ("<frozen importlib._bootstrap>", false),
            ("<string>", false),
            ("<eval_with_key>.3", false),
            ("", false),
        ] {
            assert_eq!(rules.is_user(file), user, "{file}");
        }
    }

    #[test]
    fn the_longest_prefix_given_decides() {
        let rules = PathRules {
            user: vec!["/venv/lib/python3.12/site-packages/mine".into()],
            library: vec![
                "/workspace/vendor/".into(),
                "/venv/lib/python3.12/site-packages/mine/_vendored".into(),
            ],
        };
        assert!(rules.is_user("/venv/lib/python3.12/site-packages/mine/a.py"));
        assert!(!rules.is_user("/venv/lib/python3.12/site-packages/mine/_vendored/a.py"));
        assert!(!rules.is_user("/venv/lib/python3.12/site-packages/mineral/a.py"));
        assert!(!rules.is_user("/workspace/vendor/a.py"));
        assert!(rules.is_user("/workspace/vendored.py"));
    }
}
