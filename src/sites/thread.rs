//! Roles of waiting threads.

use crate::text::Names;
use crate::vocabulary::ThreadRole;

/// Names that PyTorch, NCCL, CUDA and nsys give to threads of their own (names are cut at 15 bytes by Linux).
const LIBRARY_THREADS: Names = Names(
    "pt_nccl_ pt_data_ pt_tcpstore pt_elastic pt_gloo pt_dist nccl NCCL cuda-EvtHandlr cuda0 CUPTI [NSys \
     *2CommsProcesso QueueFeeder pin_memory",
);

pub fn is_autograd(name: &str) -> bool {
    name.starts_with("pt_autograd")
}

/// Role of a thread: by its name, else by whether it is the process's first thread or ran Python.
pub fn role(name: Option<&str>, is_main: bool, has_python: bool) -> ThreadRole {
    let name = name.unwrap_or("");
    if is_autograd(name) {
        ThreadRole::Autograd
    } else if LIBRARY_THREADS.iter().any(|p| name.starts_with(p)) {
        ThreadRole::Library
    } else if is_main || has_python {
        ThreadRole::Python
    } else {
        ThreadRole::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_threads_are_known_by_name() {
        assert_eq!(role(Some("pt_autograd_0"), false, false), ThreadRole::Autograd);
        assert_eq!(role(Some("pt_nccl_watchdg"), false, false), ThreadRole::Library);
        assert_eq!(role(Some("pt_data_pin"), false, true), ThreadRole::Library);
        assert_eq!(role(Some("python3"), true, false), ThreadRole::Python);
        assert_eq!(role(Some("worker"), false, true), ThreadRole::Python);
        assert_eq!(role(Some("worker"), false, false), ThreadRole::Unknown);
        assert_eq!(role(None, false, false), ThreadRole::Unknown);
    }
}
