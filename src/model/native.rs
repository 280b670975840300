//! Names from a native call chain: the Python method of PyTorch, else the function that called CUDA.

use crate::text;

/// The Python method behind a C function of PyTorch: its class or module, where known, and its name.
///
/// `torch::autograd::THPVariable_is_nonzero(_object*, _object*)` gives `Tensor.` and `is_nonzero`;
/// `THCPModule_cudaSynchronize` gives `torch.cuda.` and `synchronize`.
pub fn binding(symbol: &str) -> Option<(Option<&'static str>, &str)> {
    const PREFIXES: [(&str, Option<&str>); 7] = [
        ("THPVariable_", Some("Tensor.")),
        ("THCPModule_", Some("torch.cuda.")),
        ("THCPStream_", Some("Stream.")),
        ("THCPEvent_", Some("Event.")),
        ("THPStream_", None),
        ("THPEvent_", None),
        ("THPModule_", None),
    ];
    let (class, rest) = PREFIXES.iter().find_map(|(c, class)| Some((*class, symbol.split_once(c)?.1)))?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    let name = if &rest[..end] == "cudaSynchronize" { "synchronize" } else { &rest[..end] };
    (!name.is_empty()).then_some((class, name))
}

/// The Python method that a native chain names, else its innermost function that is not CUDA's own.
pub(super) fn method(native: &[String]) -> Option<String> {
    let method = native.iter().find_map(|function| {
        let (class, name) = binding(function)?;
        Some(format!("{}{name}", class?))
    });
    let plain = own_function(native).or(native.first());
    let plain = plain.map(|function| function.strip_prefix("void ").unwrap_or(function));
    method.or_else(|| plain.map(|function| text::escape_terminal(function).into_owned()))
}

/// The innermost function that called CUDA, not one that CUDA called (`sem_wait`).
pub fn own_function(native: &[String]) -> Option<&String> {
    const LIBRARIES: [&str; 8] =
        ["cuda", "cudnn", "cublas", "cufft", "curand", "cusolver", "cusparse", "__device_stub"];
    let of_cuda = |name: &String| {
        let driver =
            name.strip_prefix("cu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
        driver || LIBRARIES.iter().any(|library| name.starts_with(library))
    };
    let called = native.iter().position(of_cuda).unwrap_or(0);
    native[called..].iter().find(|name| !of_cuda(name) && !of_system(name))
}

/// Functions in which a thread waits, or looks at the clock while it waits.
fn of_system(name: &str) -> bool {
    const CALLS: [&str; 7] = ["sem_", "pthread_", "poll", "ioctl", "clock_gettime", "sched_yield", "syscall"];
    let name = name.trim_start_matches("__").trim_start_matches("GI_");
    CALLS.iter().any(|call| name.starts_with(call))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binding_names_the_tensor_method() {
        let chain = ["at::native::item(at::Tensor const&)", "torch::autograd::THPVariable_item(_object*)"];
        assert_eq!(method(&chain.map(str::to_owned)).as_deref(), Some("Tensor.item"));
        assert_eq!(method(&[chain[0].to_owned()]).as_deref(), Some(chain[0]));
        assert_eq!(method(&[]), None);
        let chain = ["sem_wait", "cuStreamSynchronize", "cudaStreamSynchronize", "cumulate", "main"];
        assert_eq!(own_function(&chain.map(str::to_owned)).map(String::as_str), Some("cumulate"));
    }
}
